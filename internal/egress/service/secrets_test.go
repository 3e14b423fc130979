package service

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

// TestRulesOfFlagsNeedTheirSecrets has rules as --egress gives them, which the check of
// the file has not seen.
func TestRulesOfFlagsNeedTheirSecrets(t *testing.T) {
	all := []config.NamedSecret{{Name: "forge", Hosts: []string{"api.example.com", "*.example.org"}}}
	for text, want := range map[string]string{
		`{ host: "api.example.com", secret: "forge" }`:  "",
		`{ host: "a.example.org", secret: "forge" }`:    "",
		`{ host: "*.a.example.org", secret: "forge" }`:  "",
		`{ host: "example.org", secret: "forge" }`:      "is not bound to example.org",
		`{ host: "evil.example.net", secret: "forge" }`: "is not bound to evil.example.net",
		`{ host: "api.example.com", secret: "other" }`:  `there is no secret "other"`,
		"evil.example.net": "",
	} {
		var e config.Egress
		if err := e.AllowRule(text); err != nil {
			t.Fatal(err)
		}
		err := checkSecrets(&e, all)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
