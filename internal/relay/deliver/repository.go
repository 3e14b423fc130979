// Package deliver takes the commits of agents out of their sandboxes, and sends
// them to the repository of the configuration. It holds the locks of branches.
package deliver

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/github"
	"github.com/atoll-run/atoll/internal/relay/rewrite"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/tracing"
)

// Dir holds mirrors, quarantines and records, below the state directory.
const Dir = "relay"

// ErrNoRelay means that the configuration names no repository.
var ErrNoRelay = errhint.With(errors.New("no repository is configured for the commits of agents"), "start it in a git checkout, or set relay.repository in the configuration")

// Deliverer takes the commits of agents out of sandboxes and sends them.
type Deliverer struct {
	*provide.Installation
	models    *service.Service // has the audit log
	approvals *approval.Queue
	pushes    pushMeters
	Tracer    *tracing.Tracer // nil traces nothing
}

// New returns the delivery of an installation.
func New(models *service.Service) *Deliverer {
	d := &Deliverer{Installation: models.Installation, models: models, approvals: approval.New(models.DB, nil), pushes: newPushMeters(models.Metrics())}
	d.approvals.Subscribe(d.auditApproval)
	return d
}

// Relays moves the commits of agents to the repository of the configuration.
type Relays struct {
	*relay.Relay
	Config   config.Relay
	settings *provide.Settings
	http     *http.Client // for GitHub's API
	proxies  []string     // variables for git
}

// OpenRelays opens the relay.
func OpenRelays(s *provide.Settings) (*Relays, error) {
	settled, err := s.Config.Relay()
	if err != nil {
		return nil, err
	}
	host, err := s.Outbound()
	if err != nil {
		return nil, err
	}
	return &Relays{
		Relay: relay.New(filepath.Join(s.Paths.AtollState, Dir)), Config: settled, settings: s,
		http: host.Client(github.Timeout), proxies: host.Proxies().Environ(),
	}, nil
}

// AuditedRelays is Relays with every step in the audit log, and a question to a
// person for commits that wait for one.
func (d *Deliverer) AuditedRelays() (*Relays, error) {
	relays, err := OpenRelays(d.Settings)
	if err != nil {
		return nil, err
	}
	log, err := d.models.AuditLog()
	if err != nil {
		return nil, err
	}
	relays.OnStep = func(r *relay.Record) {
		if err := log.Append(gitEvent(r)); err != nil {
			d.Logger.Error("audit of the relay", "run", r.Run, "error", err)
		}
		if err := d.askAboutHold(r); err != nil {
			d.Logger.Error("question about commits", "run", r.Run, "error", err)
		}
	}
	return relays, nil
}

func gitEvent(r *relay.Record) *audit.GitEvent {
	event := &audit.GitEvent{
		Time: r.Changed, Subject: audit.Subject{Account: r.Account, Agent: r.Agent, Run: r.Run},
		Step: string(r.Step), Branch: r.Work.Key.Branch(), Head: r.Head, Denied: r.Trouble,
	}
	if r.Step == relay.Blocked || r.Step == relay.Waiting {
		event.Denied = r.Report.Findings[0].Rule
	}
	return event
}

// WorkOf says whose work goes to a repository. Checkout is the directory whose
// checkout is meant where the configuration names no repository.
type WorkOf struct{ Account, Agent, Checkout string }

// Project is the repository of an agent's work, with its credential.
func (r *Relays) Project(of WorkOf) (*relay.Project, error) {
	settled := r.Config.For(of.Account, of.Agent)
	c := &settled
	work, err := checkoutOf(c, of.Checkout)
	if err != nil {
		return nil, err
	}
	p := &relay.Project{
		Remote: git.Remote{URL: c.Repository, CAFile: c.CAFile, Plain: c.Plain, Env: r.proxies}, Base: c.Base, History: c.History, MaxBytes: c.Limits.PackBytes,
		Identity: rewrite.Identity{Name: c.Author.Name, Email: c.Author.Email}, Policy: r.Policy(),
	}
	if work != nil {
		p.Checkout, p.Base = work, c.CheckoutBase()
		return p, nil
	}
	client := &github.Client{Base: c.API, HTTP: r.http}
	if c.Pulls {
		if c.Owner == "" {
			return nil, errhint.With(fmt.Errorf("relay.repository %s names no owner and repository", c.Repository), "write https://HOST/OWNER/NAME, or set relay.pullRequests to false")
		}
		p.Pulls = &relay.Pulls{Client: client, Owner: c.Owner, Repo: c.Name, Draft: c.Draft, Labels: c.Labels}
	}
	p.Credential, err = r.credential(c.Credential, client)
	return p, err
}

// checkoutOf is the checkout that is the repository: of the directory that the
// configuration names, or else of dir. It is nil if the repository is a remote.
func checkoutOf(c *config.Relay, dir string) (*checkout.Checkout, error) {
	switch {
	case c.Repository == "" && dir == "":
		return nil, ErrNoRelay
	case c.Repository != "" && !isCheckout(c.Repository):
		return nil, nil
	}
	found, err := checkout.Open(cmp.Or(c.Repository, dir))
	if errors.Is(err, checkout.ErrNone) || errors.Is(err, checkout.ErrBare) {
		return nil, ErrNoRelay
	}
	return found, err
}

// isCheckout tells a work tree from an address and from a bare repository.
func isCheckout(repository string) bool {
	_, err := os.Lstat(filepath.Join(repository, ".git"))
	return filepath.IsAbs(repository) && err == nil
}

func (r *Relays) credential(c config.RelayCredential, client *github.Client) (github.Credential, error) {
	switch {
	case c.App != nil:
		return &github.App{Client: client, ID: c.App.ID, Installation: c.App.Installation, Key: secret.PEM{Path: c.App.KeyFile}}, nil
	case c.Token != nil:
		source, err := r.settings.KeySource(*c.Token)
		return github.Token{Source: source}, err
	}
	return nil, nil
}

// Policy is what may be pushed, by the configuration.
func (r *Relays) Policy() content.Policy {
	l := &r.Config.Limits
	return content.Policy{
		Commits: l.Commits, Files: l.Files, FileBytes: l.FileBytes, TotalBytes: l.TotalBytes,
		Protected: protections(r.Config.Protect), Known: hostSecrets(r.settings, &r.Config),
	}
}

// protections are the built-in ones, changed by the configuration. Its own come
// first: the first that matches decides.
func protections(own map[string]string) []contentpolicy.Protection {
	list := []contentpolicy.Protection{}
	for _, pattern := range slices.Sorted(maps.Keys(own)) {
		list = append(list, contentpolicy.Protection{Pattern: pattern, Verdict: contentpolicy.Verdict(own[pattern]), Why: "the configuration protects it"})
	}
	return append(list, contentpolicy.Protections()...)
}
