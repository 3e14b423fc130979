package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/browser/actions"
	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
	"github.com/atoll-run/atoll/internal/tool"
)

// browserTool is the name of the tool.
const browserTool = "browser"

// useBrowser gives tools the browser of the session, if it has one. Nothing is started
// before the first call. The returned function ends its use.
func (h *Host) useBrowser(p *plan.Plan, s *provide.ReadySandbox, who provide.Subject, o *tool.Options) (leave func(), err error) {
	if o.NoBrowser = NoBrowser(p); o.NoBrowser != nil {
		return func() {}, nil
	}
	asks := &handover{queue: h.commits.Approvals(), owner: approval.Owner{Account: who.Account, Agent: p.Agent.ID, Session: p.Session.Key}}
	used, err := h.browsers.Tool(who, browsers.ToolOptions{
		Workspace: &browserWorkspace{h, s, o}, Options: actions.Options{Evaluate: p.Agent.Sandbox.Browser.Evaluate, Handover: asks},
	})
	if err != nil {
		return nil, err
	}
	asks.browser = used.Name()
	o.Browser = used
	return used.Release, nil
}

// beginBrowser starts the browser of a session, if it has one that starts with the
// sandbox.
func (h *Host) beginBrowser(p *plan.Plan, who provide.Subject) {
	if p.Agent.Sandbox.Browser.AutoStart == browserkeys.AutoStartTrue && NoBrowser(p) == nil {
		h.browsers.Begin(who)
	}
}

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

// browserWorkspace is the workspace of a session to its browser.
type browserWorkspace struct {
	host  *Host
	box   *provide.ReadySandbox
	tools *tool.Options
}

// Put implements browsers.Workspace.
func (w *browserWorkspace) Put(ctx context.Context, quarantine, file, name string) (string, error) {
	media := workspace.Media{Roots: []string{quarantine}, Sources: []workspace.Source{{Path: file, Name: name}}}
	staged, warnings, err := w.host.stageMedia(ctx, w.box, media)
	if err != nil {
		return "", err
	}
	if len(staged) != 1 {
		return "", fmt.Errorf("not put into the workspace: %s", strings.Join(provide.WarningTexts(warnings), "; "))
	}
	return staged[0].Path, nil
}

// Get implements browsers.Workspace.
func (w *browserWorkspace) Get(ctx context.Context, path string, most int64) ([]byte, error) {
	at, err := w.tools.Paths.Resolve(path, w.tools.Workdir)
	if err != nil {
		return nil, err
	}
	content, err := w.tools.Isolated.Files.Read(ctx, at.Container, &guestfs.ReadOptions{Limit: min(most, guestfs.MaxRead)})
	if err != nil {
		return nil, err
	}
	if content.More {
		return nil, fmt.Errorf("%.200q is too large to be uploaded", path)
	}
	return content.Data, nil
}

const (
	// handoverKind is the kind of the questions that have a person go on in a browser.
	handoverKind = "browser-handover"
	handoverOpen = 15 * time.Minute
	handoverPoll = 250 * time.Millisecond
)

// handover asks a person to go on in a browser.
type handover struct {
	queue   *approval.Queue
	owner   approval.Owner
	browser string // the name of its sandbox
}

// Ask implements actions.Handover.
func (a *handover) Ask(ctx context.Context, reason, url string) error {
	asked, err := a.queue.Ask(ctx, &approval.Request{
		Kind: handoverKind, Subject: a.browser, Owner: a.owner, For: handoverOpen,
		Summary:  fmt.Sprintf("go on in the browser of %s: %.300q", a.browser, reason),
		Evidence: fmt.Sprintf("reason: %.2000q\npage: %q\nbrowser: %s\nanswer yes when you are done, no if it cannot be done\n", reason, url, a.browser),
	})
	for err == nil && asked.State == approval.Open {
		select {
		case <-time.After(handoverPoll):
		case <-ctx.Done():
			return fmt.Errorf("nobody has answered question %s in time", asked.ID)
		}
		asked, err = a.queue.Get(ctx, asked.ID)
	}
	switch {
	case err != nil:
		return err
	case asked.State != approval.Answered:
		return fmt.Errorf("nobody has answered question %s in time", asked.ID)
	case !asked.Answer.Allows():
		return fmt.Errorf("the person says that it cannot be done")
	}
	return nil
}
