package secret_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/secret"
)

func TestTheFirstSourceWithAValueCounts(t *testing.T) {
	dir := t.TempDir()
	none := secret.Env{Variable: "NONE", Getenv: func(string) string { return "" }}
	missing := secret.File{Path: filepath.Join(dir, "missing")}
	one := secret.Literal{Value: secret.New("one-0123456789")}
	two := secret.Literal{Value: secret.New("two-0123456789")}
	open := secret.File{Path: write(t, dir, "open", key, 0o644)}
	failing := secret.Command{Argv: []string{"false"}}
	for name, c := range map[string]struct {
		sources []secret.Source
		value   string
		err     string
	}{
		"the first":            {[]secret.Source{one, two}, "one-0123456789", ""},
		"behind absent ones":   {[]secret.Source{none, missing, two, one}, "two-0123456789", ""},
		"none":                 {[]secret.Source{none, missing}, "", "no value in variable NONE, file "},
		"a file for all":       {[]secret.Source{open, one}, "", "mode 0644 lets others"},
		"a program that fails": {[]secret.Source{failing, one}, "", "exit status 1"},
		"no keyring":           {[]secret.Source{secret.Keyring{Entry: "x"}, one}, "one-0123456789", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", "/usr/bin:/bin")
			value, source, err := secret.First(t.Context(), c.sources...)
			switch {
			case c.err == "" && (err != nil || value.Reveal() != c.value || source == nil):
				t.Errorf("%v", err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || !value.IsEmpty()):
				t.Errorf("%v, want %q", err, c.err)
			case name == "none" && !errors.Is(err, secret.ErrAbsent):
				t.Errorf("%v is not ErrAbsent", err)
			}
		})
	}
}

// TestKeyring has a program in the place of secret-tool that answers as it does.
func TestKeyring(t *testing.T) {
	dir := t.TempDir()
	program := "#!/bin/sh\n[ \"$*\" = 'lookup service atoll name github' ] && printf %s keyring-0123456789 && exit\n[ \"$5\" = locked ] && echo keyring-0123456789 >&2 && exit 3\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "secret-tool"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	v, err := secret.Keyring{Entry: "github"}.Read(t.Context())
	if err != nil || v.Reveal() != "keyring-0123456789" {
		t.Error(err)
	}
	if _, err := (secret.Keyring{Entry: "other"}).Read(t.Context()); !errors.Is(err, secret.ErrAbsent) {
		t.Error(err)
	}
	if _, err := (secret.Keyring{Entry: "locked"}).Read(t.Context()); err == nil || errors.Is(err, secret.ErrAbsent) || strings.Contains(err.Error(), "0123456789") {
		t.Error(err)
	}
}
