package service

import (
	"strconv"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// MeteredLog is the audit log, and counts what goes into it: one record a
// request holds all that the metrics of models are about.
type MeteredLog struct {
	*audit.Log
	service                                  *Service
	requests, denied, tokens, cost, unpriced *metrics.Counters
	relayed, egress, egressBytes             *metrics.Counters
	approvals, logins, files, commands       *metrics.Counters
	firstByte, total                         *metrics.Histograms
}

func newMeteredLog(log *audit.Log, a *Service) *MeteredLog {
	r := &a.metrics
	return &MeteredLog{
		service:     a,
		Log:         log,
		requests:    r.Counter("atoll_llm_requests_total", "Requests to models, by dialect and status.", "dialect", "status"),
		denied:      r.Counter("atoll_llm_denied_total", "Requests that were refused, by dialect.", "dialect"),
		tokens:      r.Counter("atoll_llm_tokens_total", "Tokens, by kind.", "kind"),
		cost:        r.Counter("atoll_llm_cost_microusd_total", "Millionths of a dollar, by our own prices."),
		unpriced:    r.Counter("atoll_llm_unpriced_total", "Calls of models without a price."),
		relayed:     r.Counter("atoll_relay_steps_total", "Steps of deliveries of commits, by step.", "step"),
		egress:      r.Counter("atoll_egress_events_total", "Connections and requests out of sandboxes, by event (opened, closed, denied, request, leak-attempt) and mode.", "event", "mode"),
		egressBytes: r.Counter("atoll_egress_bytes_total", "Bytes of connections out of sandboxes that are closed, by direction: in or out.", "direction"),
		approvals:   r.Counter("atoll_approvals_total", "Questions to a person that were asked, answered or expired, by topic, event and answer.", "topic", "event", "answer"),
		logins:      r.Counter("atoll_gateway_logins_total", "Connections of authenticated callers, and tokens that were refused, by result: accepted or refused.", "result"),
		files:       r.Counter("atoll_sync_decisions_total", "Decisions of the sync gate, by event.", "event"),
		commands:    r.Counter("atoll_commands_total", "Commands that were started in sandboxes."),
		firstByte:   r.Histogram("atoll_llm_first_byte_seconds", "Time to the first byte of an answer.", metrics.Seconds(), "dialect"),
		total:       r.Histogram("atoll_llm_duration_seconds", "Time of a whole answer.", metrics.Seconds(), "dialect"),
	}
}

// Append writes an event, and counts it.
func (l *MeteredLog) Append(e audit.Event) error {
	switch e := e.(type) {
	case *audit.ModelRequest:
		l.count(e)
		if l.service.OnCall != nil {
			l.service.OnCall(e)
		}
	case *audit.GitEvent:
		l.relayed.With(e.Step).Inc()
	case *audit.EgressEvent:
		l.egress.With(e.Event, e.Mode).Inc()
		l.egressBytes.With("out").Add(e.BytesOut)
		l.egressBytes.With("in").Add(e.BytesIn)
	case *audit.ApprovalEvent:
		l.approvals.With(e.Topic, e.Event, e.Answer).Inc()
	case *audit.LoginEvent:
		l.logins.With(loginResult(e)).Inc()
	case *audit.FileEvent:
		l.files.With(e.Event).Inc()
	case *audit.ExecEvent:
		l.commands.With().Inc()
	}
	return l.Log.Append(e)
}

func loginResult(e *audit.LoginEvent) string {
	if e.Denied != "" {
		return "refused"
	}
	return "accepted"
}

// count counts a request to a model.
func (l *MeteredLog) count(r *audit.ModelRequest) {
	l.requests.With(r.Dialect, strconv.Itoa(r.Status)).Inc()
	if r.Denied != "" {
		l.denied.With(r.Dialect).Inc()
	}
	if r.Unpriced {
		l.unpriced.With().Inc()
	}
	for _, t := range [...]struct {
		kind string
		n    int64
	}{{"input", r.Tokens.Input}, {"cached_input", r.Tokens.CachedInput}, {"cache_write", r.Tokens.CacheWrite},
		{"output", r.Tokens.Output}, {"reasoning", r.Tokens.Reasoning}} {
		if t.n > 0 {
			l.tokens.With(t.kind).Add(t.n)
		}
	}
	l.cost.With().Add(r.CostMicroUSD)
	if r.FirstByte > 0 {
		l.firstByte.With(r.Dialect).Observe(r.FirstByte.Seconds())
		l.total.With(r.Dialect).Observe(r.Total.Seconds())
	}
}

// Metrics is what Prometheus may read of this process.
func (a *Service) Metrics() *metrics.Registry { return &a.metrics }

// watchLedger lets Prometheus see how the ledger fares.
func watchLedger(r *metrics.Registry, l *usage.Ledger) {
	r.Gauge("atoll_usage_reservations", "Calls under way that hold a budget, of all processes.", func() float64 {
		open, _ := l.Load()
		return float64(open)
	})
	r.Gauge("atoll_usage_journal_lag_bytes", "Bytes of the journal that are not in SQLite yet.", func() float64 {
		_, lag := l.Load()
		return float64(lag)
	})
}
