package config_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

// What lets callers in is what OpenClaw's mode names; modes that would let in others
// are refused by name when a gateway is to start, and load otherwise.
func TestGatewayAuth(t *testing.T) {
	for _, c := range []struct{ auth, token, password, refused string }{
		{`{token: "t"}`, "t", "", ""},
		{`{password: "p"}`, "", "p", ""},
		{`{token: "t", password: "p"}`, "t", "", ""},
		{`{mode: "token", token: "t", password: "p"}`, "t", "", ""},
		{`{mode: "password", token: "t", password: "p"}`, "", "p", ""},
		{`{mode: "none"}`, "", "", "gateway.auth.mode: none"},
		{`{mode: "trusted-proxy", token: "t"}`, "", "", "gateway.auth.mode: trusted-proxy"},
	} {
		cfg, err := config.Parse("/project/atoll.json5", []byte(`{gateway: {auth: `+c.auth+`}}`), testEnv())
		if err != nil {
			t.Fatal(err)
		}
		g, err := cfg.Gateway()
		if c.refused != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.refused) {
				t.Errorf("%s: %v", c.auth, err)
			}
			continue
		}
		if err != nil || reveal(g.Token) != c.token || reveal(g.Password) != c.password || g.ByPassword != (c.password != "") {
			t.Errorf("%s: %+v, %v", c.auth, g, err)
		}
	}
}

func reveal(s *config.Secret) string {
	if s == nil {
		return ""
	}
	return s.Reveal()
}
