package service

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/browser/actions"
	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tool"
)

// NoBrowser returns why a session has no browser; nil if it has one.
func NoBrowser(p *plan.Plan) error {
	switch {
	case !p.Sandboxed:
		return errhint.With(errors.New("the session is not sandboxed, and browsers are in sandboxes only"), "set sandbox.mode to all")
	case !p.Agent.Sandbox.Browser.Enabled:
		return tool.ErrNoBrowser
	}
	return nil
}

// Tool is the tool browser of one session. It starts the browser at its first call.
type Tool struct {
	*Session
	options actions.Options
}

// ToolOptions say what the tool of a session works with.
type ToolOptions struct {
	actions.Options
	Workspace Workspace
}

// Tool returns the tool of a subject. The caller calls Release.
func (s *Service) Tool(who provide.Subject, o ToolOptions) (*Tool, error) {
	p, err := s.Plan(who)
	if err != nil {
		return nil, err
	}
	b, err := p.Browser()
	if err != nil {
		return nil, err
	}
	used := s.use(b.Spec.Name, who)
	keys := p.Agent.Sandbox.Browser
	used.setManual(keys.AutoStart == browserkeys.AutoStartFalse)
	if o.Workspace != nil {
		o.Files = &files{session: used, to: o.Workspace, uploads: keys.Uploads, most: keys.Downloads.MaxBytes}
	}
	return &Tool{used, o.Options}, nil
}

// Name returns the name of the browser's sandbox.
func (r *Session) Name() string { return r.name }

// Do implements tool.Browser.
func (t *Tool) Do(ctx context.Context, a *tool.BrowserArgs) (*tool.Result, error) {
	t.hold()
	defer t.leave()
	r, err := t.driver.Do(ctx, a, t.options)
	if r != nil {
		r.Sandbox = t.name
	}
	return r, err
}

// Release ends the use of the browser, which is frozen and ended once it is idle.
func (t *Tool) Release() { t.release() }

// Running implements actions.Source.
func (r *Session) Running(ctx context.Context) (*actions.Running, error) {
	b, err := r.wanted(ctx)
	if err != nil {
		return nil, err
	}
	return &actions.Running{Browser: b.Browser, Number: b.Number, Why: b.Why}, nil
}
