package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config/textcheck"
)

// Relay is relay.* with defaults. Without a repository there is none.
type Relay struct {
	Repository string                `json:"repository,omitempty"`
	Base       string                `json:"base"`
	History    int                   `json:"history"` // commits; 0 is all
	Container  string                `json:"container,omitempty"`
	Credential RelayCredential       `json:"credential,omitzero"`
	Accounts   map[string]RelayEntry `json:"accounts,omitzero"`
	Agents     map[string]RelayEntry `json:"agents,omitzero"`
	Pulls      bool                  `json:"pullRequests"`
	API        string                `json:"api,omitempty"`
	Owner      string                `json:"owner,omitempty"`
	Name       string                `json:"name,omitempty"`
	Draft      bool                  `json:"draft"`
	Labels     []string              `json:"labels,omitzero"`
	Author     RelayAuthor           `json:"author"`
	CAFile     string                `json:"caFile,omitempty"`
	Plain      bool                  `json:"allowHTTP,omitzero"`
	Limits     RelayLimits           `json:"limits"`
	Protect    map[string]string     `json:"protect,omitzero"`

	ownBase bool  // base is written down
	pulls   *bool // pullRequests, if it is
}

// RelayEntry is what holds for one account or one agent instead.
type RelayEntry struct {
	Repository string `json:"repository,omitempty"`
	Base       string `json:"base,omitempty"`
	RelayCredential
}

// RelayCredential is one way to a repository, or none.
type RelayCredential struct {
	Token *LLMKey   `json:"token,omitempty"`
	App   *RelayApp `json:"app,omitempty"`
}

// RelayApp is an installation of a GitHub App.
type RelayApp struct {
	ID           string `json:"id"`
	Installation int64  `json:"installation"`
	KeyFile      string `json:"keyFile"`
}

// RelayAuthor is who commits are by.
type RelayAuthor struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// RelayLimits is relay.limits.
type RelayLimits struct {
	Commits    int   `json:"commits"`
	Files      int   `json:"files"`
	FileBytes  int64 `json:"fileBytes"`
	TotalBytes int64 `json:"totalBytes"`
	PackBytes  int64 `json:"packBytes"`
}

// DefaultRelayToken is the variable that holds the token if nothing is said.
const DefaultRelayToken = "GITHUB_TOKEN" //nolint:gosec // the name of a variable

const gitHub = "github.com"

func builtinRelay() Relay {
	return Relay{
		Base: "main", History: 100, Draft: true, Author: RelayAuthor{Name: "Atoll", Email: "atoll@localhost"},
		Limits: RelayLimits{Commits: 100, Files: 1000, FileBytes: 10 << 20, TotalBytes: 100 << 20, PackBytes: 64 << 20},
	}
}

// Relay returns relay.* with defaults.
func (c *Config) Relay() (Relay, error) {
	out := builtinRelay()
	if c.file.Relay == nil {
		c.limits.relay(&out)
		return out, nil
	}
	f := c.file.Relay
	out.Labels, out.Protect, out.pulls = slices.Clone(f.Labels), maps.Clone(f.Protect), f.Pulls
	set(&out.Repository, f.Repository)
	set(&out.Base, f.Base)
	out.ownBase = f.Base != nil
	set(&out.History, f.History)
	set(&out.Container, f.Container)
	set(&out.Draft, f.Draft)
	set(&out.Plain, f.Plain)
	set(&out.API, f.API)
	out.Author.fill(orEmpty(f.Author))
	out.onGitHub()
	if err := out.Limits.fill(orEmpty(f.Limits)); err != nil {
		return out, err
	}
	c.limits.relay(&out)
	return out, c.relayPaths(&out, f)
}

// onGitHub finds out what the address says.
func (r *Relay) onGitHub() {
	r.Pulls, r.Owner, r.Name = false, "", ""
	u, err := url.Parse(r.Repository)
	if err != nil || u.Host == "" {
		return
	}
	r.Pulls = strings.EqualFold(u.Host, gitHub) || r.API != ""
	set(&r.Pulls, r.pulls)
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) >= 2 {
		r.Owner, r.Name = parts[len(parts)-2], strings.TrimSuffix(parts[len(parts)-1], ".git")
	}
}

// relayPaths fills in what is on the host.
func (c *Config) relayPaths(out *Relay, f *relayFile) (err error) {
	local := textcheck.IsDirectory(out.Repository)
	if local {
		if out.Repository, err = c.hostPath(out.Repository); err != nil {
			return err
		}
	}
	if f.CA != nil {
		if out.CAFile, err = c.hostPath(*f.CA); err != nil {
			return err
		}
	}
	out.Credential, err = c.relayCredential(f.Token, f.App)
	if out.Credential == (RelayCredential{}) && !local {
		out.Credential.Token = &LLMKey{Env: DefaultRelayToken}
	}
	if err != nil {
		return err
	}
	if out.Accounts, err = c.relayEntries(f.Accounts); err != nil {
		return err
	}
	out.Agents, err = c.relayEntries(f.Agents)
	return err
}

func (c *Config) relayEntries(from map[string]relayAccountFile) (all map[string]RelayEntry, err error) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		f := from[name]
		e := RelayEntry{Repository: orEmptyText(f.Repository), Base: orEmptyText(f.Base)}
		if textcheck.IsDirectory(e.Repository) {
			if e.Repository, err = c.hostPath(e.Repository); err != nil {
				return nil, err
			}
		}
		if e.RelayCredential, err = c.relayCredential(f.Token, f.App); err != nil {
			return nil, err
		}
		if all == nil {
			all = map[string]RelayEntry{}
		}
		all[name] = e
	}
	return all, nil
}

func orEmptyText(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// For is what holds for an agent's work on behalf of an account: the account's
// own, then the agent's, then the general.
func (r *Relay) For(account, agent string) Relay {
	out := *r
	out.apply(r.Agents[agent])
	out.apply(r.Accounts[account])
	return out
}

// apply replaces what an entry names. A credential goes with its host: another
// one is not sent it.
func (r *Relay) apply(e RelayEntry) {
	if e.Repository != "" {
		if host := hostOf(e.Repository); host != hostOf(r.Repository) {
			r.Credential, r.API = RelayCredential{}, ""
			if host == gitHub {
				r.Credential.Token = &LLMKey{Env: DefaultRelayToken}
			}
		}
		r.Repository = e.Repository
		r.onGitHub()
	}
	if e.Base != "" {
		r.Base, r.ownBase = e.Base, true
	}
	if e.RelayCredential != (RelayCredential{}) {
		r.Credential = e.RelayCredential
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// TakeAddress takes an address for the repository, where the file names none, with the
// token that is looked for by default.
func (r *Relay) TakeAddress(address string) {
	if r.Repository != "" || address == "" {
		return
	}
	r.Repository = address
	if !textcheck.IsDirectory(address) {
		r.Credential.Token = &LLMKey{Env: DefaultRelayToken}
	}
	r.onGitHub()
}

// CheckoutBase is the branch of a checkout that work begins at; "" is its HEAD.
func (r *Relay) CheckoutBase() string {
	if r.ownBase {
		return r.Base
	}
	return ""
}

func (c *Config) relayCredential(token *llmKeyFile, app *relayAppFile) (RelayCredential, error) {
	switch {
	case token != nil:
		key, err := c.llmKey(token)
		return RelayCredential{Token: &key}, err
	case app != nil:
		key, err := c.hostPath(*app.Key)
		return RelayCredential{App: &RelayApp{ID: *app.ID, Installation: *app.Installation, KeyFile: key}}, err
	}
	return RelayCredential{}, nil
}

func (a *RelayAuthor) fill(f *relayAuthorFile) {
	set(&a.Name, f.Name)
	set(&a.Email, f.Email)
}

func (l *RelayLimits) fill(f *relayLimitsFile) error {
	set(&l.Commits, f.Commits)
	set(&l.Files, f.Files)
	for _, size := range []struct {
		to   *int64
		from *Size
	}{{&l.FileBytes, f.FileBytes}, {&l.TotalBytes, f.TotalBytes}, {&l.PackBytes, f.PackBytes}} {
		if size.from == nil {
			continue
		}
		n, err := size.from.Bytes()
		if err != nil {
			return err
		}
		*size.to = n
	}
	return nil
}
