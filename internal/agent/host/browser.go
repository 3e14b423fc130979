package host

import (
	"github.com/atoll-run/atoll/internal/browser/actions"
	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tool"
)

// useBrowser gives tools the browser of the session, if it has one. Nothing is started
// before the first call. The returned function ends its use.
func (h *Host) useBrowser(p *plan.Plan, s *provide.ReadySandbox, who provide.Subject, o *tool.Options) (leave func(), err error) {
	if o.NoBrowser = NoBrowser(p); o.NoBrowser != nil {
		return func() {}, nil
	}
	used, err := h.browsers.Tool(who, actions.Options{})
	if err != nil {
		return nil, err
	}
	o.Browser = used
	return used.Release, nil
}

// browserTool is the name of the tool.
const browserTool = "browser"

// NoBrowser returns why the tool browser cannot work in a session; nil if it can.
func NoBrowser(p *plan.Plan) error {
	t, _ := tool.Find(browserTool)
	if !t.Decide(p.Tools).Allowed {
		return tool.ErrNoBrowser
	}
	return browsers.NoBrowser(p)
}

// Decide answers whether a session may use a tool, and whether it can work there.
func Decide(t tool.Tool, p *plan.Plan, c tool.Caller) policy.Decision {
	d := t.Decide(c.Policy)
	if err := browsers.NoBrowser(p); d.Allowed && t.Name == browserTool && err != nil {
		return policy.Decision{Reason: err.Error(), Fix: []string{errhint.Of(err)}}
	}
	return d
}
