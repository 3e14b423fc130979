package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/testkit/relaytest"
)

const (
	token  = "canary-token-0123456789"
	main   = "refs/heads/main"
	branch = "refs/heads/sandbox/work"
)

// mirror is a repository of ours with what the server has.
func mirror(t *testing.T, server *relaytest.GitServer) (*git.Repo, *git.Remote, string) {
	t.Helper()
	remote := &git.Remote{URL: server.Create(t, "project.git", map[string]string{"README.md": "hello\n"}), User: "x-access-token", Secret: secret.New(token), Plain: true}
	repo, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "mirror.git"), confined.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.Fetch(t.Context(), remote, main); err != nil {
		t.Fatal(err)
	}
	heads, err := repo.Heads(t.Context(), remote, main, branch)
	if err != nil || len(heads) != 1 {
		t.Fatalf("%v, %v", heads, err)
	}
	return repo, remote, heads[main]
}

// child makes a commit on top of another.
func child(t *testing.T, repo *git.Repo, parent, message string) string {
	t.Helper()
	object := "tree " + git.EmptyTree + "\nparent " + parent + "\nauthor a <a@example.com> 1700000000 +0000\ncommitter a <a@example.com> 1700000000 +0000\n\n" + message + "\n"
	if _, err := repo.Output(t.Context(), strings.NewReader(""), "hash-object", "-t", "tree", "-w", "--stdin"); err != nil {
		t.Fatal(err)
	}
	out, err := repo.Output(t.Context(), strings.NewReader(object), "hash-object", "-t", "commit", "-w", "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestPushOneBranch(t *testing.T) {
	server := relaytest.NewGitServer(t, token)
	repo, remote, base := mirror(t, server)
	first := child(t, repo, base, "first")
	if err := repo.Push(t.Context(), remote, branch, first, ""); err != nil {
		t.Fatal(err)
	}
	second := child(t, repo, first, "second")
	if err := repo.Push(t.Context(), remote, branch, second, first); err != nil {
		t.Fatal(err)
	}
	if got := server.Git(t, "project.git", "for-each-ref", "--format=%(refname) %(objectname)"); got != main+" "+base+"\n"+branch+" "+second {
		t.Errorf("the server has %s", got)
	}
	for _, request := range server.Requests() {
		if strings.Contains(request, "canary") {
			t.Errorf("the credential is in %s", request)
		}
	}
}

func TestPushSeesThatSomebodyElseDid(t *testing.T) {
	server := relaytest.NewGitServer(t, token)
	repo, remote, base := mirror(t, server)
	theirs := child(t, repo, base, "theirs")
	if err := repo.Push(t.Context(), remote, branch, theirs, ""); err != nil {
		t.Fatal(err)
	}
	ours := child(t, repo, base, "ours")
	for name, seen := range map[string]string{"believed absent": "", "believed elsewhere": base} {
		if err := repo.Push(t.Context(), remote, branch, ours, seen); !errors.Is(err, git.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := server.Git(t, "project.git", "rev-parse", branch); got != theirs {
		t.Errorf("the server's branch is %s", got)
	}
}

func TestWrongCredential(t *testing.T) {
	server := relaytest.NewGitServer(t, token)
	repo, remote, base := mirror(t, server)
	for name, given := range map[string]secret.Value{"wrong": secret.New("another-canary-value"), "none": {}} {
		other := *remote
		other.Secret = given
		err := repo.Push(t.Context(), &other, branch, base, "")
		if !errors.Is(err, git.ErrRefused) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRemotesThatAreRefused(t *testing.T) {
	server := relaytest.NewGitServer(t, token)
	repo, _, _ := mirror(t, server)
	canary := filepath.Join(t.TempDir(), "canary")
	for _, url := range []string{
		"ext::touch " + canary, "ssh://host/x", "git@host:x", "-oProxyCommand=touch " + canary, "--upload-pack=touch " + canary, "http://example.com/x",
		"https://user:pass@example.com/x", "file:///etc", "relative/path", "", "git://example.com/x", "fd::3",
	} {
		if _, err := repo.Heads(t.Context(), &git.Remote{URL: url}, main); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a program was run")
	}
}

// What a user or the system configured for git is not read: neither another
// address for the same server nor a helper that is told the credential.
func TestConfigurationOfTheHostIsNotRead(t *testing.T) {
	server := relaytest.NewGitServer(t, token)
	repo, remote, base := mirror(t, server)
	home, canary := t.TempDir(), filepath.Join(t.TempDir(), "canary")
	config := "[url \"http://127.0.0.1:1/\"]\n\tinsteadOf = " + server.URL + "/\n[credential]\n\thelper = !touch " + canary + "\n[core]\n\thooksPath = " + home + "\n"
	for _, path := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(home, "config")} {
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "pre-push"), []byte("#!/bin/sh\ntouch "+canary+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, "config"))
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "url.http://127.0.0.1:1/.insteadOf")
	t.Setenv("GIT_CONFIG_VALUE_0", server.URL+"/")
	if err := repo.Push(t.Context(), remote, branch, child(t, repo, base, "x"), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a program of the configuration was run")
	}
}

// A server that sends elsewhere does not get what is meant for it.
func TestRedirectIsNotFollowed(t *testing.T) {
	server := relaytest.NewGitServer(t, token)
	repo, remote, _ := mirror(t, server)
	elsewhere := relaytest.Redirect(t, server.URL)
	other := *remote
	other.URL = strings.Replace(remote.URL, server.URL, elsewhere, 1)
	before := len(server.Requests())
	if _, err := repo.Heads(t.Context(), &other, main); err == nil {
		t.Error("it was followed")
	}
	if len(server.Requests()) != before {
		t.Error("the second server was asked")
	}
}
