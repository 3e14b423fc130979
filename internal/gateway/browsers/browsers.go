// Package browsers lets callers of the gateway use the browsers of sandboxes: programs
// attach to them by the DevTools protocol, people watch them and take them over. Each
// connection is opened with a token or with a ticket that is good once, and is recorded.
package browsers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/browser/attach"
	"github.com/atoll-run/atoll/internal/browser/driver"
	running "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// The reasons why a browser cannot be used.
var (
	ErrNotFound   = errors.New("there is no such browser")
	ErrNotRunning = errhint.With(errors.New("the browser does not run"), "start it: POST /api/v1/browsers")
	ErrOff        = errhint.With(errors.New("programs may not attach to this browser"), "set sandbox.browser.cdp to operator")
	ErrAddress    = errors.New("programs at this address may not attach to this browser")
	ErrViewOff    = errhint.With(errors.New("people may not watch this browser"), "set sandbox.browser.view to auto")
	ErrControlOff = errhint.With(errors.New("people may not take this browser over"), "set sandbox.browser.control to ask")
	ErrNoWindow   = errhint.With(errors.New("the browser has no window that can be watched"), "set sandbox.browser.headless to false and noVncEnabled to true, and start it again; or watch its page: POST /api/v1/browsers/NAME/view")
	ErrFull       = errhint.With(errors.New("too many are connected to this browser"), "end one of the others first")
)

const (
	// MaxPrograms is how many programs are attached to one browser.
	MaxPrograms = 20
	// MaxViewers is how many watch one browser.
	MaxViewers = 100
)

// Options configure a Service.
type Options struct {
	In       *provide.Installation
	Browsers *running.Service
	Drivers  *driver.Drivers
	Access   *access.Access
	Origins  []string   // of pages that may open WebSockets, besides the gateway's own
	Port     func() int // of this machine that callers come in by; 0 if there is none
	Audit    func(*audit.BrowserEvent) error
	Logger   *slog.Logger
}

// Service has the connections to browsers.
type Service struct {
	Options
	tickets *tickets

	mu   sync.Mutex
	used map[string]*used // by the name of the sandbox
}

// used is what this process knows of a browser.
type used struct {
	contexts attach.Contexts
	programs int
	viewers  int

	mu      sync.Mutex         // guards screens
	screens map[string]*shared // that are watched, by tab
}

// New returns a service without connections.
func New(o Options) *Service {
	return &Service{Options: o, tickets: &tickets{now: time.Now, open: map[[32]byte]*ticket{}}, used: map[string]*used{}}
}

// List returns the browsers that a caller sees.
func (s *Service) List(ctx context.Context, c *access.Caller, account string) (*api.Browsers, error) {
	all, _, err := s.In.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	list := &api.Browsers{Browsers: []api.Browser{}}
	for i := range all {
		e := all[i].Entry
		if e.Kind == sandbox.KindBrowser && c.Sees(e.Account) && (account == "" || account == e.Account) {
			list.Browsers = append(list.Browsers, s.describe(e, all[i].Running))
		}
	}
	return list, nil
}

func (s *Service) describe(e *sandbox.Entry, isRunning bool) api.Browser {
	settings := s.settings(e)
	s.In.WithEndpoints(e)
	b := api.Browser{
		Name: e.ContainerName, SessionKey: e.SessionKey, AgentID: e.AgentID, Account: e.Account, Running: isRunning, Open: isRunning && s.Browsers.IsOpen(e.ContainerName),
		CDP: settings.CDP == browserkeys.CDPOperator, View: settings.View == browserkeys.ViewAuto, Control: settings.Control == browserkeys.ControlAsk, Window: hasWindow(settings),
		Person: s.Drivers.IsTaken(e.ContainerName), CDPPort: e.CDPPort, NoVNCPort: e.NoVNCPort,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.used[e.ContainerName]; u != nil {
		b.Programs, b.Viewers = u.programs, u.viewers
	}
	return b
}

// hasWindow reports whether a browser has a window that people may watch.
func hasWindow(b *config.Browser) bool { return b.Windowed() && b.NoVNCEnabled }

// settings returns the browser's settings of the sandbox's agent; those that allow nothing
// if there is no such agent any more.
func (s *Service) settings(e *sandbox.Entry) *config.Browser {
	agent, err := s.In.Config.Resolve(e.AgentID)
	if err != nil {
		return &config.Browser{}
	}
	return &agent.Sandbox.Browser
}

// find returns the browser of a name, if the caller sees it.
func (s *Service) find(ctx context.Context, c *access.Caller, name string) (*sandbox.Entry, error) {
	e, err := s.In.Registry.Get(ctx, name)
	if errors.Is(err, sandbox.ErrNotFound) || err == nil && (e.Kind != sandbox.KindBrowser || !c.Sees(e.Account)) {
		return nil, ErrNotFound
	}
	return e, err
}

// Start starts the browser of a session, unless it runs.
func (s *Service) Start(ctx context.Context, who *provide.Subject) (*api.Browser, error) {
	session, err := s.Browsers.Use(*who)
	if err != nil {
		return nil, err
	}
	defer session.Release()
	started, err := session.Browser(ctx)
	if err != nil {
		return nil, err
	}
	e, err := s.In.Registry.Get(ctx, started.Box.Name)
	if err != nil {
		return nil, err
	}
	b := s.describe(e, true)
	return &b, nil
}

// of returns what is known of a browser. The caller holds the lock.
func (s *Service) of(name string) *used {
	if s.used[name] == nil {
		s.used[name] = &used{}
	}
	return s.used[name]
}

// connection is a running browser in use.
type connection struct {
	*browser.Browser
	release func()
}

// open connects to a browser that runs.
func (s *Service) open(ctx context.Context, name string) (*connection, error) {
	h, err := s.In.Manager.Attach(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	release, err := s.keep(ctx, name, h.Machine)
	if err != nil {
		h.Release()
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	b, err := browser.Attach(ctx, h.Machine, browser.Options{})
	if err != nil {
		h.Release()
		release()
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	return &connection{b, func() { _ = b.Close(); h.Release(); release() }}, nil
}

// keep counts as a use of a browser, so that it is not frozen for want of use, nor ended if
// it was started here.
func (s *Service) keep(ctx context.Context, name string, m *machine.Machine) (release func(), err error) {
	session := s.Browsers.Opened(name)
	if session == nil {
		return s.Browsers.Join(ctx, name, m)
	}
	if err := session.Thaw(ctx); err != nil {
		session.Release()
		return nil, err
	}
	return session.Release, nil
}

// enter counts a connection to a browser. The caller calls leave.
func (s *Service) enter(name string, count func(*used) *int, most int) (u *used, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u = s.of(name)
	if *count(u) >= most {
		return nil, nil, ErrFull
	}
	*count(u)++
	return u, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		*count(u)--
	}, nil
}

// checkSource refuses an address outside sandbox.browser.cdpSourceRange. The owner's
// socket has none.
func checkSource(settings *config.Browser, from netip.Addr) error {
	if settings.CDPSourceRange == "" || !from.IsValid() {
		return nil
	}
	network, err := netip.ParsePrefix(settings.CDPSourceRange)
	if err != nil || !network.Contains(from) {
		return ErrAddress
	}
	return nil
}
