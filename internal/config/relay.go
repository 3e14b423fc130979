package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Relay is relay.* with defaults. Without a repository there is none.
type Relay struct {
	Repository string                     `json:"repository,omitempty"`
	Base       string                     `json:"base"`
	History    int                        `json:"history"` // commits; 0 is all
	Container  string                     `json:"container,omitempty"`
	Credential RelayCredential            `json:"credential,omitzero"`
	Accounts   map[string]RelayCredential `json:"accounts,omitzero"`
	Pulls      bool                       `json:"pullRequests"`
	API        string                     `json:"api,omitempty"`
	Owner      string                     `json:"owner,omitempty"`
	Name       string                     `json:"name,omitempty"`
	Draft      bool                       `json:"draft"`
	Labels     []string                   `json:"labels,omitzero"`
	Author     RelayAuthor                `json:"author"`
	CAFile     string                     `json:"caFile,omitempty"`
	Plain      bool                       `json:"allowHTTP,omitzero"`
	Limits     RelayLimits                `json:"limits"`
	Protect    map[string]string          `json:"protect,omitzero"`
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
		return out, nil
	}
	f := c.file.Relay
	out.Repository, out.Labels, out.Protect = *f.Repository, slices.Clone(f.Labels), maps.Clone(f.Protect)
	set(&out.Base, f.Base)
	set(&out.History, f.History)
	set(&out.Container, f.Container)
	set(&out.Draft, f.Draft)
	set(&out.Plain, f.Plain)
	set(&out.API, f.API)
	out.Author.fill(orEmpty(f.Author))
	out.onGitHub(f.Pulls)
	if err := out.Limits.fill(orEmpty(f.Limits)); err != nil {
		return out, err
	}
	c.limits.relay(&out)
	return out, c.relayPaths(&out, f)
}

// onGitHub finds out what the address says.
func (r *Relay) onGitHub(pulls *bool) {
	u, err := url.Parse(r.Repository)
	if err != nil || u.Host == "" {
		return
	}
	r.Pulls = strings.EqualFold(u.Host, gitHub) || r.API != ""
	set(&r.Pulls, pulls)
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) >= 2 {
		r.Owner, r.Name = parts[len(parts)-2], strings.TrimSuffix(parts[len(parts)-1], ".git")
	}
}

// relayPaths fills in what is on the host.
func (c *Config) relayPaths(out *Relay, f *relayFile) (err error) {
	local := isDirectory(out.Repository)
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
	for _, name := range slices.Sorted(maps.Keys(f.Accounts)) {
		if err != nil {
			return err
		}
		if out.Accounts == nil {
			out.Accounts = map[string]RelayCredential{}
		}
		out.Accounts[name], err = c.relayCredential(f.Accounts[name].Token, f.Accounts[name].App)
	}
	return err
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
