package bench

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/model/proxy/ask"
	"github.com/atoll-run/atoll/internal/model/usage"
)

const (
	firstTurns = 25 // short ones: the load of a machine changes from one second to the next
	firstEach  = 20
	// addedToFirst is how much later the first byte may come, in ms.
	addedToFirst = 0.4
)

// firstAnswer is an answer whose first byte is waited for.
type firstAnswer struct {
	name    string
	request []byte
	claimed bool
}

// firstAnswers are a model that thinks between words, as models do; one that
// answers in one piece; and one that fills a processor of its own with words, so
// that a proxy has to wait for it before it passes on the first word.
func firstAnswers() []firstAnswer {
	return []firstAnswer{
		{"stream with pauses", question(1500, true, "pausing"), true},
		{"whole answer", question(1500, false), false},
		{"stream without a pause", question(1500, true), false},
	}
}

// firstSide is a way to the model.
type firstSide struct {
	name, socket string
	samples      []float64
}

// first measures the time to the first byte with one caller: directly, through
// processes that decide and count nothing, and through the proxy.
func (p *proxyRun) first() error {
	fmt.Fprintln(p.options.Progress, "time to the first byte …")
	relay, err := startRelay(p.ctx, p.options, filepath.Join(p.dir, "relay.sock"), p.upstream)
	if err != nil {
		return err
	}
	defer relay.stop()
	for _, answer := range firstAnswers() {
		sides := []*firstSide{
			{name: "directly", socket: p.peers.direct}, {name: "bare relay", socket: relay.socket},
			{name: "nginx", socket: p.peers.nginx.socket}, {name: "atoll", socket: p.peers.atoll.socket},
		}
		if err := p.firstOf(&answer, sides); err != nil {
			return err
		}
	}
	return p.parts()
}

func (p *proxyRun) firstOf(answer *firstAnswer, sides []*firstSide) error {
	for range firstTurns {
		for _, s := range sides {
			times, err := firstBytes(p.ctx, s.socket, firstEach, answer.request)
			if err != nil {
				return fmt.Errorf("first byte, %s: %w", s.name, err)
			}
			s.samples = append(s.samples, times...)
		}
	}
	var medians []float64
	for _, s := range sides {
		r := row("first byte of a "+answer.name+", "+s.name, "µs", s.samples)
		p.report.Rows = append(p.report.Rows, r)
		medians = append(medians, r.P50)
	}
	if answer.claimed {
		p.report.Ratios = append(p.report.Ratios, atMost("time to the first byte added, ms", (medians[3]-medians[0])/1e3, addedToFirst))
	}
	return nil
}

// parts measures what the proxy does beyond passing on, in this process and one
// after the other, as seldom as a single caller asks for it.
func (p *proxyRun) parts() (err error) {
	b, err := openBooks(p.ctx, filepath.Join(p.dir, "parts"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	_, body, _ := bytes.Cut(question(1500, true), []byte("\r\n\r\n"))
	reader := ask.NewReader()
	names := []string{"judging the request", "the reservation", "the settlement", "the record"}
	samples := make([][]float64, len(names))
	for range firstTurns * 4 {
		time.Sleep(pace)
		var times [5]time.Time
		if err := b.steps(p, reader, body, &times); err != nil {
			return err
		}
		for i := range names {
			samples[i] = append(samples[i], microseconds(times[i+1].Sub(times[i])))
		}
	}
	for i, name := range names {
		p.report.Rows = append(p.report.Rows, row("of that "+name+", alone", "µs", samples[i]))
	}
	return nil
}

// steps takes them for one request, and notes when.
func (b *books) steps(p *proxyRun, r *ask.Reader, body []byte, at *[5]time.Time) error {
	at[0] = time.Now()
	var a ask.Ask
	rules := ask.Rules{Strict: true, MaxN: 8, MaxOutput: 1 << 20, InjectUsage: true}
	if err := r.Read(&a, body, ask.Chat, &rules); err != nil {
		return err
	}
	at[1] = time.Now()
	held, err := b.ledger.Reserve(p.ctx, &usage.Call{
		ID: rand.Text(), Subject: usage.Subject{Run: "run", Account: "account"}, Model: "bench", InputTokens: a.InputTokens, MaxOutputTokens: -1,
		Limits: []usage.Limit{{Scope: usage.ScopeRun, MicroUSD: 1e12}, {Scope: usage.ScopeDay, MicroUSD: 1e12}},
	})
	if err != nil {
		return err
	}
	at[2] = time.Now()
	if _, err := held.Settle(usage.Outcome{Status: 200, Model: "bench", Tokens: usage.Tokens{Input: 400, Output: 160}}); err != nil {
		return err
	}
	at[3] = time.Now()
	err = b.log.Append(&audit.ModelRequest{Time: at[0], RequestID: held.ID(), Status: 200, CostMicroUSD: 1})
	at[4] = time.Now()
	return err
}
