package proxy

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/model/proxy/ask"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/secret"
)

// Ledger reserves the cost of calls. *usage.Ledger implements it.
type Ledger interface {
	Reserve(ctx context.Context, call *usage.Call) (*usage.Reservation, error)
}

// Auditor keeps one record for each request. *audit.Log implements it.
type Auditor interface {
	Append(e audit.Event) error
	Healthy() error
}

// Keys are the keys of an upstream. *secret.Pool implements it.
type Keys interface {
	Pick() (secret.Key, error)
	Values() []secret.Value
}

// Provider is an upstream with the models that it serves.
type Provider struct {
	Name     string
	Upstream Upstream
	Keys     Keys
	Models   []string // names, or beginnings of names that end in *; none: all
}

// Options are the dependencies and limits of a Server; a limit of zero is the default.
type Options struct {
	Providers []Provider // the one that names a model most exactly is asked
	Ledger    Ledger
	Audit     Auditor
	Logger    *slog.Logger

	// Installation identifies this installation among those that share an upstream.
	Installation string
	// Allowed are members and tools that requests may have besides those that are
	// known; nil: none.
	Allowed *ask.Allowed

	MaxBody      int64 // bytes of a request
	MaxAnswer    int64 // bytes of an answer that is not a stream
	MaxMemory    int64 // bytes of all bodies together
	MaxConns     int   // connections of all callers together
	MaxPerCaller int   // requests under way of one caller
	MaxN         int64 // answers to one request
	MaxOutput    int64 // tokens that one request may ask for; 0: no limit

	HeadTimeout  time.Duration // from the first byte of a head to its last
	BodyTimeout  time.Duration // for the body of a request
	KeepAlive    time.Duration // between the requests of a connection
	WriteTimeout time.Duration // for a caller to take what it asked for
	Tick         time.Duration // how often a waiting request is checked for a reason to stop
	Drain        time.Duration // how long an answer whose caller has gone is read on for its usage
	KeepReplay   time.Duration // how long the answer of a lost wire is kept for its caller

	// Broken reports whether an error of a caller's connection means that its wire
	// was lost, and not that the caller has gone; nil: never.
	WireLost func(error) bool
}

// GCPercent is the garbage that may gather in a process that only serves a proxy,
// for debug.SetGCPercent: memory is bounded by what requests may hold, and
// collecting costs more than it frees.
const GCPercent = 400

// The defaults of Options.
const (
	DefaultMaxBody      = 32 << 20
	DefaultMaxAnswer    = 32 << 20
	DefaultMaxMemory    = 256 << 20
	DefaultMaxConns     = 4096
	DefaultMaxPerCaller = 64
	DefaultMaxN         = 8
	DefaultHeadTimeout  = 10 * time.Second
	DefaultBodyTimeout  = time.Minute
	DefaultKeepAlive    = 2 * time.Minute
	DefaultWriteTimeout = time.Minute
	DefaultTick         = 200 * time.Millisecond
	DefaultDrain        = 500 * time.Millisecond
	DefaultKeepReplay   = 2 * time.Minute
)

func (o *Options) fill() {
	o.MaxBody = cmp.Or(o.MaxBody, DefaultMaxBody)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, DefaultMaxAnswer)
	o.MaxMemory = cmp.Or(o.MaxMemory, DefaultMaxMemory)
	o.MaxConns = cmp.Or(o.MaxConns, DefaultMaxConns)
	o.MaxPerCaller = cmp.Or(o.MaxPerCaller, DefaultMaxPerCaller)
	o.MaxN = cmp.Or(o.MaxN, DefaultMaxN)
	o.HeadTimeout = cmp.Or(o.HeadTimeout, DefaultHeadTimeout)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, DefaultBodyTimeout)
	o.KeepAlive = cmp.Or(o.KeepAlive, DefaultKeepAlive)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	o.Tick = cmp.Or(o.Tick, DefaultTick)
	o.Drain = cmp.Or(o.Drain, DefaultDrain)
	o.KeepReplay = cmp.Or(o.KeepReplay, DefaultKeepReplay)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func (o *Options) headTimeouts() h1.HeadTimeouts {
	return h1.HeadTimeouts{First: o.KeepAlive, Rest: o.HeadTimeout}
}
