package service

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// ModelPort is where programs in a sandbox find models.
const ModelPort = 8080

// ModelAddress is where programs find models that leave the ports of localhost to what
// they start. It is beside the addresses that stand for names.
var ModelAddress = netip.AddrFrom4([4]byte{127, 77, 255, 2})

// ModelGrant is a grant under which a sandbox's programs can call models.
type ModelGrant struct {
	*grant.Grant
	// URL is where the models are, without /v1.
	URL      string
	listener *machine.PortListener
	done     chan error
	endKeys  func()
}

// Grant opens a grant in a session's sandbox and serves models at its port 8080,
// for the commands that are started under the grant. Other grants of the account may be
// open in the sandbox.
func (m *Proxy) Grant(ctx context.Context, s *provide.ReadySandbox, terms *grant.Terms) (*ModelGrant, error) {
	return m.grant(ctx, s, terms, netip.Addr{})
}

// GrantApart is Grant that serves models at ModelAddress, so that the port is free for
// what the commands start. A guest of an older build has them at localhost.
func (m *Proxy) GrantApart(ctx context.Context, s *provide.ReadySandbox, terms *grant.Terms) (*ModelGrant, error) {
	g, err := m.grant(ctx, s, terms, ModelAddress)
	if errors.Is(err, machine.ErrUnsupported) {
		return m.Grant(ctx, s, terms)
	}
	return g, err
}

func (m *Proxy) grant(ctx context.Context, s *provide.ReadySandbox, terms *grant.Terms, at netip.Addr) (*ModelGrant, error) {
	grants := grant.NewGrants(s.Name, s.Machine, m.service.Locks)
	g, err := grants.Open(ctx, terms)
	if err != nil {
		return nil, err
	}
	listener, err := m.listen(ctx, s.Machine, g.ID(), at)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("serve models in the sandbox: %w", err), g.Close())
	}
	limits := Limits(&m.Config, &s.Plan.Agent.LLM)
	keys, endKeys, err := m.keysOfRun(ctx, terms, limits)
	if err != nil {
		return nil, errors.Join(err, listener.Close(), g.Close())
	}
	mg := &ModelGrant{Grant: g, URL: urlAt(at), listener: listener, done: make(chan error, 1), endKeys: endKeys}
	authenticate := proxy.AuthenticateByGrant(limits, keys)
	go func() { mg.done <- m.Serve(grants.Listener(listener, true), authenticate) }()
	return mg, nil
}

// listen opens the port of models for the callers of one grant, beside the listeners of
// others.
func (m *Proxy) listen(ctx context.Context, inside *machine.Machine, id string, at netip.Addr) (*machine.PortListener, error) {
	options := &machine.PortOptions{
		WithGrant: true, Grant: id, Address: at, MaxConns: m.Config.Limits.Connections,
		Gate: func(context.Context, machine.Caller) error { return nil }, // Grants.Listener decides
	}
	listener, err := inside.Listen(ctx, ModelPort, options)
	if !errors.Is(err, machine.ErrUnsupported) || at.IsValid() {
		return listener, err
	}
	options.Grant = "" // a guest of an older build, where the grant is the only one
	return inside.Listen(ctx, ModelPort, options)
}

// LocalURL is where models are at localhost, without /v1.
func LocalURL() string { return urlAt(netip.Addr{}) }

// urlAt is where models are at an address; one that is not valid is localhost.
func urlAt(at netip.Addr) string {
	if !at.IsValid() {
		at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return fmt.Sprintf("http://%v:%d", at, ModelPort)
}

// Close ends the grant, everything that was started under it, the port, and the
// keys that were made for the run.
func (g *ModelGrant) Close() error {
	err := g.Grant.Close()
	err = errors.Join(err, g.listener.Close(), <-g.done)
	g.endKeys()
	return err
}

// Terms are those of a session's agent, for the models that were asked for: all
// of the agent's if none were.
func Terms(p *plan.Plan, account string, models []string) (*grant.Terms, error) {
	allowed := AllowedModels(&p.Agent.LLM)
	for _, model := range models {
		if !Fits(allowed, model) {
			return nil, errhint.With(fmt.Errorf("agent %s may not call model %s", p.Agent.ID, model), "see agents.…llm.models in the configuration")
		}
	}
	if len(models) == 0 {
		models = allowed
	}
	return &grant.Terms{
		Account: account, Agent: p.Agent.ID, Session: p.Session.Key, Models: models,
		Graph: run.HostAgent, BodyPolicy: p.Agent.LLM.BodyPolicy,
	}, nil
}

// ModelIDs returns names of models as programs inside call them: without the
// provider that PROVIDER/NAME begins with.
func (a *Service) ModelIDs(names []string) ([]string, error) {
	cfg, err := a.Config.LLM()
	ids := slices.Clone(names)
	for i, name := range names {
		provider, id, ok := strings.Cut(name, "/")
		if ok && slices.ContainsFunc(cfg.Providers, func(p config.LLMProvider) bool { return p.Name == provider }) {
			ids[i] = id
		}
	}
	return ids, err
}

// Fits reports whether a name, or a beginning of names, is within a list of such.
func Fits(allowed []string, model string) bool {
	return slices.ContainsFunc(allowed, func(name string) bool {
		prefix, open := strings.CutSuffix(name, "*")
		return name == model || open && strings.HasPrefix(model, prefix)
	})
}

// ModelEnv is where programs look for models, for those that ask variables. The
// keys in it are no keys.
func ModelEnv() map[string]string {
	base := fmt.Sprintf("http://localhost:%d", ModelPort)
	return map[string]string{
		"OPENAI_BASE_URL": base + "/v1", "OPENAI_API_KEY": noKey, "ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": noKey,
		"GOOGLE_GEMINI_BASE_URL": base, "GEMINI_API_KEY": noKey,
	}
}

// noKey is what stands where programs want a key.
const noKey = "none-needed"
