package checkout_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/checkout"
)

const canary = "s3cr3t-canary"

// A sandbox sees what git needs, and no credential wherever it stands.
func TestWithoutCredentials(t *testing.T) {
	top := repository(t)
	config := filepath.Join(top, ".git", "config")
	text := `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	sshCommand = ssh -i ` + canary + `
	askPass = ` + canary + `
# ` + canary + `
[remote "origin"]
	url = https://me:` + canary + `@example.com/a.git ; ` + canary + `
	pushurl = "https://` + canary + `@example.com/a.git?private_token=` + canary + `"
	fetch = +refs/heads/*:refs/remotes/origin/*
	proxy = http://u:` + canary + `@proxy
[remote "ssh"]
	url = ssh://git@example.com/a.git
[remote "scp"]
	url = git@example.com:a.git
[http "https://example.com/"]
	extraheader = AUTHORIZATION: basic ` + canary + `
	cookieFile = ` + canary + `
[http]
	proxy = http://u:` + canary + `@proxy
[credential]
	helper = "!f() { echo password=` + canary + `; }; f"
[credential "https://example.com"]
	username = ` + canary + `
[url "https://` + canary + `@example.com/"]
	insteadOf = gh:
[include]
	path = ` + canary + `
[sendemail]
	smtpPass = ` + canary + `
[github]
	oauth-token = ` + canary + `
[lfs "https://u:` + canary + `@example.com/lfs"]
	access = basic
	token = ` + canary + `
[submodule "x"]
	url = https://u:` + canary + `@example.com/x
	active = true
[user]
	name = A \"quoted\" name \
continued
	signingKey = ` + canary + `
[commit]
	gpgSign = true
[alias]
	x = !curl -u ` + canary + `
[branch "main"]
	remote = origin
	merge = refs/heads/main
	flag
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	shown, err := checkout.WithoutCredentials(text, "")
	if err != nil || strings.Contains(shown, canary) {
		t.Fatalf("%v: %s", err, shown)
	}
	before := map[string]string{}
	keys := []string{"core.filemode", "remote.origin.fetch", "remote.ssh.url", "remote.scp.url", "user.name", "branch.main.merge", "branch.main.flag", "submodule.x.active"}
	for _, key := range keys {
		before[key] = shell(t, top, "git config --get "+key)
	}
	if err := os.WriteFile(config, []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if got := shell(t, top, "git config --get "+key); got != before[key] {
			t.Errorf("%s is %q inside, and %q outside", key, got, before[key])
		}
	}
	if got := shell(t, top, "git config --get remote.origin.url; git config --get remote.origin.pushurl; git config --list | grep -c -i gpgsign || true"); got != "https://example.com/a.git\nhttps://example.com/a.git\n0" {
		t.Errorf("the addresses are %s", got)
	}
}

// A configuration that git would not read is not shown at all.
func TestConfigThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"[core", "x = 1", "[core]\n= 1", "[core]\n\tx = \"open", "[core]\n\tx = \\q", "[a \"b]\n", "[core]\n\t9x = 1", "[]\n", "[core]\n\tx y = 1"} {
		if shown, err := checkout.WithoutCredentials(text, ""); err == nil {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
}

// What is shown is read again as the same, and holds no user of an address.
func FuzzWithoutCredentials(f *testing.F) {
	for _, seed := range []string{"[core]\n\tbare = false\n", "[remote \"o\"]\n\turl = https://u:p@h/x\n", "[user]\n\tname = \"a\\\"b\" c \\\n d ; e\n", "[branch.Old]\nmerge\n", "\ufeff[core]\r\n\tx\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown, err := checkout.WithoutCredentials(text, "")
		if err != nil {
			return
		}
		again, err := checkout.WithoutCredentials(shown, "")
		if err != nil || again != shown {
			t.Errorf("%q becomes %q, %v", shown, again, err)
		}
	})
}
