// Package rest is the gateway's HTTP interface: agents, runs and their events,
// sandboxes, sessions, approvals, changes of agents, costs, the audit log and the gateway's own health.
//
// Routes are a table of values, from which requests are served and the OpenAPI
// document is made. The types of requests and answers are in package api; callers
// are authenticated by package access. This package decides what a caller sees,
// bounds every request, and turns errors into problems.
package rest

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/tracing"
)

// Options configure a Server.
type Options struct {
	// Identify authenticates a request.
	Identify func(*http.Request) (*access.Caller, error)
	Limits   Limiter
	Web      *access.Access // log-ins of web browsers; nil if the gateway has no pages
	PageURL  func() string  // where the pages are; "" if no address is listened on
	Address  func() string  // the URL of the gateway; "" if no address is listened on
	Socket   string         // the path of the owner's socket
	Runs     Runs
	Store    RunStore
	Agents   []Catalogue
	Choices  Choices // nil lists nothing
	// Examine looks at what sandboxes need of this machine. Nil finds nothing.
	Examine func(context.Context) []api.DoctorCheck
	// Tokens and Devices are those of callers. Without them there are none.
	Tokens  Tokens
	Devices Devices

	Settings   Settings
	AgentNames []string // of the configuration
	Relay      Relay    // nil if there is none
	// Usage returns what running sandboxes use. Nil measures nothing.
	Usage func(context.Context) ([]SandboxUse, error)
	// Changed is told of topics of package live that have changed. Nil is told nothing.
	Changed func(topic string)

	Pools     Pools // nil if there are none
	Sandboxes Sandboxes
	Made      *sandboxes.Service // sandboxes that programs made; nil if there are none
	Browsers  Browsers           // nil if there are none
	Approvals Approvals
	Sync      Sync
	Sessions  Sessions
	Ledger    Ledger
	Ready     func(context.Context) error // returns nil if all parts can work
	Version   string
	TraceLink string            // the page of a trace, with textcheck.TracePlaceholder; "" if there is none
	Metrics   *metrics.Registry // nil makes one
	Logger    *slog.Logger      // nil discards
	Limit     Limit
	Tracer    *tracing.Tracer   // nil traces nothing
	Inbound   *membudget.Budget // memory of bodies that arrive; nil is access.NewInbound
}

// Limiter bounds the rate and the quota of a caller.
type Limiter interface {
	// Admit counts a request.
	Admit(*access.Caller) error
	// Begin counts a run until its end.
	Begin(ctx context.Context, c *access.Caller) (end func(), err error)
	// Quota returns the caller's quota.
	Quota(*access.Caller) access.Quota
	// CheckSandboxes returns an error if the caller may have no more sandboxes.
	CheckSandboxes(ctx context.Context, c *access.Caller) error
}

// RunStore reads receipts and events of runs.
type RunStore interface {
	Get(ctx context.Context, id string) (*run.Receipt, error)
	GetFor(ctx context.Context, id string, sees func(account string) bool) (*run.Receipt, error)
	List(ctx context.Context, f run.Filter) ([]run.Receipt, error)
	Count(ctx context.Context, f run.Filter) (int, error)
	Events(ctx context.Context, id string, after int64) ([]run.Event, error)
}

// Server serves the HTTP interface. It must be drained or closed before its options
// are.
type Server struct {
	Options
	mux    *http.ServeMux
	table  []route
	active *activeRuns
	counts *metrics.Counters
	meters runMeters
}

// New returns a server of the routes.
func New(o Options) *Server {
	o.Limit.fill()
	o.Metrics = cmp.Or(o.Metrics, &metrics.Registry{})
	o.Inbound = cmp.Or(o.Inbound, access.NewInbound())
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	s := &Server{Options: o, mux: http.NewServeMux()}
	s.active = newActiveRuns(&s.Limit)
	s.counts = o.Metrics.Counter("atoll_gateway_requests_total", "HTTP requests by route and status.", "route", "status")
	s.meters = newRunMeters(o.Metrics, s.active)
	s.table = s.routes()
	for i := range s.table {
		s.mux.Handle(s.table[i].pattern(), s.serve(&s.table[i]))
	}
	s.serveVersion()
	s.mux.HandleFunc("/", s.notFound)
	return s
}

// Running returns how many runs are under way.
func (s *Server) Running() int { return s.active.running() }

// Drain accepts no more runs, waits for those under way until the context ends, and
// cancels the rest.
func (s *Server) Drain(ctx context.Context) { s.active.drain(ctx) }

// Close cancels every run, and returns when all receipts are stored.
func (s *Server) Close() { s.active.close() }
