package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/testkit/relaytest"
)

// credential is what the relay opens the remote with for an account, and what
// ends it.
func (s *site) credential(relays *deliver.Relays, account string) (token string, end func()) {
	s.t.Helper()
	p, err := relays.Project(deliver.WorkOf{Account: account})
	if err != nil {
		s.t.Fatal(err)
	}
	value, done, err := p.Credential.Token(s.t.Context(), p.Pulls.Owner, p.Pulls.Repo)
	if err != nil {
		s.t.Fatal(err)
	}
	return value.Reveal(), func() {
		if err := done(s.t.Context()); err != nil {
			s.t.Error(err)
		}
	}
}

// A billing account has a credential of its own, here tokens of a GitHub App made
// for one repository and ended after use; everybody else has GITHUB_TOKEN.
//
// Seen to fail with a Project that does not look at relay.accounts.
func TestRelayCredentialOfAnAccount(t *testing.T) {
	s := linuxSite(t)
	hub := relaytest.NewGitHub(t, relayToken, "org/project")
	gitHubApp := relaytest.NewApp(t, hub, "12", 34)
	key := filepath.Join(s.dir, "app.pem")
	if err := os.WriteFile(key, []byte(gitHubApp.Key), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env["GITHUB_TOKEN"] = relayToken
	s.set("relay.repository", "https://github.example.com/org/project")
	s.set("relay.api", gitHubApp.URL)
	s.set("relay.accounts.acme.app", map[string]any{"id": "12", "installation": 34, "key": key})
	relays, err := deliver.OpenRelays(s.open().Settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"", "other"} {
		if token, _ := s.credential(relays, account); token != relayToken {
			t.Errorf("account %q has %q", account, token)
		}
	}
	token, end := s.credential(relays, "acme")
	if !strings.HasPrefix(token, "ghs_") || !hub.Tokens[token] || len(gitHubApp.Asked) != 1 || strings.Join(gitHubApp.Asked[0], " ") != "project" {
		t.Errorf("acme has %q, for %v", token, gitHubApp.Asked)
	}
	if end(); hub.Tokens[token] {
		t.Error("the token is still good")
	}
}

// An account's repository goes before its agent's, and that before the general
// one; a credential is not sent to another host.
//
// Seen to fail with an apply that keeps the credential.
func TestRelayRepositoryOfAnAgentAndAnAccount(t *testing.T) {
	s := linuxSite(t)
	s.env["GITHUB_TOKEN"], s.env["OTHER_TOKEN"] = relayToken, "other-token"
	s.set("relay.repository", "https://git.example.com/org/general")
	s.set("relay.token", map[string]any{"env": "OTHER_TOKEN"})
	s.set("relay.agents.reviewer.repository", "https://github.com/org/agents")
	s.set("relay.agents.reviewer.base", "next")
	s.set("relay.accounts.acme.repository", "https://elsewhere.example.com/acme/own")
	relays, err := deliver.OpenRelays(s.open().Settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of               deliver.WorkOf
		url, base, token string
	}{
		{deliver.WorkOf{}, "https://git.example.com/org/general", "main", "other-token"},
		{deliver.WorkOf{Agent: "reviewer"}, "https://github.com/org/agents", "next", relayToken},
		{deliver.WorkOf{Agent: "reviewer", Account: "acme"}, "https://elsewhere.example.com/acme/own", "next", ""},
		{deliver.WorkOf{Account: "acme", Checkout: s.dir}, "https://elsewhere.example.com/acme/own", "main", ""},
	} {
		p, err := relays.Project(c.of)
		if err != nil {
			t.Fatal(err)
		}
		token := ""
		if p.Credential != nil {
			value, _, err := p.Credential.Token(t.Context(), "org", "x")
			if err != nil {
				t.Fatal(err)
			}
			token = value.Reveal()
		}
		if p.Remote.URL != c.url || p.Base != c.base || token != c.token {
			t.Errorf("%+v: %s %s %q", c.of, p.Remote.URL, p.Base, token)
		}
	}
}
