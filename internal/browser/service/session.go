package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/browser/actions"
	"github.com/atoll-run/atoll/internal/config/browserkeys"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

const (
	// attachTimeout is how long a browser that another process starts may take.
	attachTimeout = 30 * time.Second
	// attachEvery is the pause between two attempts to connect to it.
	attachEvery = 100 * time.Millisecond
)

// Session is the browser of one sandbox. It is started when it is first wanted and again
// after it has ended.
type Session struct {
	service *Service
	who     provide.Subject
	name    string // of the sandbox
	driver  *actions.Driver

	users int  // guarded by mu of service
	rest  rest // as users

	mu      sync.Mutex // held while it is started or ended
	box     *provide.ReadySandbox
	egress  *egress.Egress
	lock    *filelock.Lock // held by the process that started it
	browser *browser.Browser
	starts  int
	frozen  bool
	manual  bool // the tool does not start it
	staged  []string
	// others is shared by processes that use a browser which another has started: it
	// does not freeze it then.
	others *filelock.Lock

	taken map[string]bool // downloads that were looked at; used by the driver's calls only
	files []actions.File  // what became of them; as taken
}

// Started is a browser that runs.
type Started struct {
	*browser.Browser
	Box *provide.ReadySandbox
	// Number counts the browsers that the session has had: with another number all that
	// was known of tabs and pages is void.
	Number int
	// Why says why the one before it ended; nil if there was none.
	Why error
}

// Browser returns the running browser: the one of before, one that another process of the
// host has started in the sandbox, or a new one.
func (r *Session) Browser(ctx context.Context) (*Started, error) {
	defer r.touch()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready(ctx)
}

// ready is Browser for a caller that holds the lock.
func (r *Session) ready(ctx context.Context) (*Started, error) {
	var why error
	if r.browser != nil {
		if why = errors.Join(r.over(), r.thaw(ctx)); why == nil {
			return &Started{Browser: r.browser, Box: r.box, Number: r.starts}, nil
		}
		why = errors.Join(r.browser.Explain(why), r.stop())
	}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	r.starts++
	return &Started{Browser: r.browser, Box: r.box, Number: r.starts, Why: why}, nil
}

// over returns why the browser cannot be used any more; nil if it can.
func (r *Session) over() error {
	if err := r.browser.Err(); err != nil {
		return err
	}
	return r.egress.Err()
}

// start makes the sandbox ready and starts the browser in it, or connects to it.
func (r *Session) start(ctx context.Context) (err error) {
	if r.others, err = r.service.Locks.Share(ctx, othersLock(r.name)); err != nil {
		return err
	}
	if r.box, err = r.service.ProvideBrowser(ctx, r.who); err != nil {
		return err
	}
	r.lock, err = r.service.Locks.TryHold(lockName(r.name))
	if errors.Is(err, filelock.ErrHeld) {
		return r.attach(ctx)
	}
	if err != nil {
		return err
	}
	r.others.Release()
	r.others = nil
	if err := r.endLeft(ctx); err != nil {
		return err
	}
	if r.egress, err = r.service.egress.Open(ctx, r.box.Handle, r.box.Plan, egress.Options{Config: EgressOf, Account: r.who.Account}); err != nil {
		return err
	}
	roots, err := r.service.companyRoots()
	if err != nil {
		return err
	}
	r.browser, err = browser.Start(ctx, r.box.Machine, browser.Options{
		Roots: roots, Warn: func(err error) { r.service.Logger.Warn("a browser", "sandbox", r.name, "error", err) },
		Settings: r.settings(), Grant: r.egress.GrantID(), Downloads: r.limits(), Profile: r.box.Plan.Profile(), StartTimeout: r.startTimeout(),
	})
	return err
}

// settings returns what the configuration says of the browser.
func (r *Session) settings() *browserkeys.Browser { return &r.box.Plan.Agent.Sandbox.Browser.Browser }

// startTimeout is how long a start may take, if the configuration says it; else 0.
func (r *Session) startTimeout() time.Duration {
	if r.box.Plan.Agent.Origins["sandbox.browser.autoStartTimeoutMs"].Source == "default" {
		return 0
	}
	return time.Duration(r.settings().AutoStartTimeoutMs) * time.Millisecond
}

// limits are those of downloads that the configuration has.
func (r *Session) limits() browser.Limits {
	d := r.settings().Downloads
	return browser.Limits{Files: d.MaxFiles, Bytes: d.MaxBytes}
}

// attach connects to the browser that another process has started, or is starting.
func (r *Session) attach(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	if err := browser.Thaw(ctx, r.box.Machine); err != nil {
		return err
	}
	for {
		if r.browser, err = browser.Attach(ctx, r.box.Machine, browser.Options{Settings: r.settings()}); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errhint.With(fmt.Errorf("another process of this machine has the browser of %s, and it does not answer: %w", r.name, err), "end that process, or `atoll sandbox recreate --browser --all`")
		case <-time.After(attachEvery):
		}
	}
}

// endLeft ends browsers in the sandbox whose process on the host has died, and with it the
// egress that they had.
func (r *Session) endLeft(ctx context.Context) error {
	all, err := r.box.Machine.Processes(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Background && all[i].Result == nil {
			if err := r.box.Machine.End(ctx, all[i].ID, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// Denials returns what egress refused to the browser since the last time, a line each.
func (r *Session) Denials() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.egress.AllDenials()
}

// Stop ends the browser, if it was started here, and the use of its sandbox.
func (r *Session) Stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop()
}

func (r *Session) stop() error {
	var problems []error
	if r.browser != nil {
		problems = append(problems, r.thaw(context.Background()), r.browser.Close())
	}
	problems = append(problems, r.egress.Close())
	r.lock.Release()
	r.others.Release()
	if r.box != nil {
		r.box.Release()
	}
	r.browser, r.egress, r.lock, r.others, r.box, r.frozen, r.staged = nil, nil, nil, nil, nil, false, nil
	return errors.Join(problems...)
}
