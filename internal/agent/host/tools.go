package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tool"
	"github.com/atoll-run/atoll/internal/tool/search"
	"github.com/atoll-run/atoll/internal/version"
)

// Toolbox is a session's tools and what they work on.
type Toolbox struct {
	*tool.Set
	Plan    *plan.Plan
	Notices []string
	sandbox *provide.ReadySandbox // nil on the host
	host    *Host
	account string
	release func()
}

// Release ends the use of the session's sandboxes.
func (t *Toolbox) Release() { t.release() }

// Sandbox returns the sandbox that the tools work in; nil on the host.
func (t *Toolbox) Sandbox() *provide.ReadySandbox { return t.sandbox }

// Tools makes a session's tools ready, with everything that they work on: its
// sandbox, or both halves of it. A session that the configuration leaves
// unsandboxed has none, unless the host was asked for: hostTools, or tools.host
// in the configuration.
func (h *Host) Tools(ctx context.Context, who provide.Subject, hostTools bool) (*Toolbox, error) {
	p, err := h.Plan(who)
	if err != nil {
		return nil, err
	}
	if !p.Sandboxed {
		if !hostTools && !p.Agent.HostTools {
			return nil, unsandboxed(p)
		}
		if err := h.RefuseHostTools(); err != nil {
			return nil, &sandbox.ProvisionError{Name: p.Spec.Name, Step: "mode", Err: err}
		}
		return h.hostToolbox(ctx, who, p)
	}
	h.beginBrowser(p, who)
	s, err := h.Provide(ctx, who, provide.Options{Pair: true})
	if err != nil {
		return nil, err
	}
	box, err := h.toolbox(ctx, s, who)
	if err != nil {
		s.Release()
		return nil, err
	}
	return box, nil
}

// unsandboxed says why a session gets no tools.
func unsandboxed(p *plan.Plan) error {
	err := fmt.Errorf("session %q is not sandboxed (%s), so it gets no tools", p.Session.Key, p.Why)
	return errhint.With(&sandbox.ProvisionError{Name: p.Spec.Name, Step: "mode", Err: err},
		"set sandbox.mode to all, or allow its tools on the host: --host-tools, or tools.host in the configuration")
}

func (h *Host) toolbox(ctx context.Context, s *provide.ReadySandbox, who provide.Subject) (*Toolbox, error) {
	p := s.Plan
	o := h.toolOptions(p, who)
	o.Router, o.Paths = p.Router, p.PathMap()
	o.Workdir = p.Spec.Workdir
	o.Env = p.Env.Passed
	o.Environ = func(passed map[string]string) []string { return provide.CommandEnv(p, passed) }
	var err error
	if o.Isolated, err = placeOf(s.Handle, p.Spec); err != nil {
		return nil, err
	}
	if s.Net != nil {
		if o.Networked, err = placeOf(s.Net, p.Net); err != nil {
			return nil, err
		}
	}
	end, err := h.openEgress(ctx, s, who.Account, &o)
	if err != nil {
		return nil, err
	}
	leave, err := h.useBrowser(p, s, who, &o)
	if err != nil {
		end()
		return nil, err
	}
	return &Toolbox{Set: tool.New(o), Plan: p, Notices: s.Notices, sandbox: s, host: h, account: who.Account, release: func() { leave(); end(); s.Release() }}, nil
}

// Caller is the session of a plan, to tools. On the host only the lists for all
// sessions apply.
func Caller(p *plan.Plan) tool.Caller {
	c := tool.Caller{Policy: p.Tools, Mode: p.Agent.Sandbox.Mode, Session: p.Session}
	if !p.Sandboxed {
		all := config.ToolList{Allow: []string{}, Deny: []string{}}
		c.Policy = policy.ResolveTools(config.ToolLists{Agent: all}, "").Within(p.Agent.AllTools, "")
	}
	return c
}

// toolOptions are what the tools of every session have in common.
func (h *Host) toolOptions(p *plan.Plan, who provide.Subject) tool.Options {
	web := h.Config.Web()
	o := tool.Options{
		Caller: Caller(p), AllowSecret: p.Agent.Sandbox.AllowSecretEnv,
		Memory:      tool.NewStoredMemory(h.DB, policy.ScopeKey(config.ScopeSession, p.Session, who.Account)),
		FetchChars:  valueOf(web.Fetch.MaxChars),
		SearchCount: valueOf(web.Search.MaxResults),
		Sessions:    h.sessions(p, who.Account), Recall: h.recall(p, nil),
	}
	o.Fetch.UserAgent = web.Fetch.UserAgent
	if o.Fetch.UserAgent == "" {
		o.Fetch.UserAgent = "Atoll/" + version.Current().Version
	}
	for _, text := range web.Fetch.AllowAddresses {
		if prefix, err := netip.ParsePrefix(text); err == nil { // the configuration was checked
			o.Fetch.Permit = append(o.Fetch.Permit, prefix)
		}
	}
	if web.Fetch.Enabled != nil && !*web.Fetch.Enabled {
		o.NoFetch = errhint.With(errors.New("fetching pages is switched off"), "set tools.web.fetch.enabled to true")
	}
	o.Fetch.UseProxy = web.Fetch.UseProxy
	if host, err := h.Outbound(); err != nil {
		o.NoFetch = err
	} else {
		o.Fetch.Host = host
	}
	if engine, err := h.searchEngine(web.Search); err != nil {
		o.NoSearch = err
	} else {
		o.Search = engine
	}
	return o
}

func valueOf(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}

// searchEngine is the configured provider. Its key stays on the host.
func (h *Host) searchEngine(c config.WebSearch) (*search.Engine, error) {
	if c.Enabled != nil && !*c.Enabled {
		return nil, errhint.With(errors.New("web search is switched off"), "set tools.web.search.enabled to true")
	}
	key, err := h.searchKey(c)
	if err != nil {
		return nil, err
	}
	host, err := h.Outbound()
	if err != nil {
		return nil, err
	}
	return search.New(search.Options{
		Provider: c.Provider, Key: key, BaseURL: c.BaseURL, Timeout: time.Duration(valueOf(c.TimeoutSeconds)) * time.Second, Host: host,
	})
}

// searchKey finds the provider's key: in the file, in the variable that the
// file names, or in the variable that the provider's own tools use.
func (h *Host) searchKey(c config.WebSearch) (string, error) {
	switch {
	case c.APIKey == nil:
		if c.Provider == "brave" {
			return h.Getenv("BRAVE_API_KEY"), nil
		}
		return "", nil
	case c.APIKey.Ref == nil:
		return c.APIKey.Reveal(), nil
	case c.APIKey.Ref.Source == "env":
		return h.Getenv(c.APIKey.Ref.ID), nil
	}
	return "", fmt.Errorf("tools.web.search.apiKey: secrets from %q cannot be read yet", c.APIKey.Ref.Source)
}

// placeOf is one sandbox as tools see it.
func placeOf(h *sandbox.Handle, spec *sandbox.Spec) (*tool.Location, error) {
	files, err := provide.FilesOf(h, spec)
	if err != nil {
		return nil, err
	}
	return &tool.Location{
		Name: h.Name, Image: spec.Image, Machine: h.Machine, Files: files, Guest: provide.GuestProgram,
		Network: policy.Networked(spec.Network),
	}, nil
}
