package take_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gate/take"
)

// Where the person signs, the commits are signed on the host, and the next ones
// build on the signed ones.
func TestSigned(t *testing.T) {
	s := newScene(t, "true")
	s.signs()
	s.work("echo x > x && " + commit + "first && echo y > y && " + commit + "second")
	taken := s.take(take.Request{})
	if !taken.Signed || taken.Head == taken.Agent {
		t.Errorf("%+v", taken)
	}
	s.work("echo z > z && git -c user.name=robot -c user.email=r@localhost commit -q --allow-empty -m third")
	if taken = s.take(take.Request{}); !taken.Signed || taken.Commits != 1 || len(taken.Notes) > 0 {
		t.Errorf("%+v", taken)
	}
	const log = "git -c gpg.ssh.allowedSignersFile=$HOME/signers log --format='%G? %an %cn %s' main..atoll/main"
	if got := s.host(log); got != "G robot p third\nG p p second\nG p p first" {
		t.Errorf("the branch has %s", got)
	}
	s.host("git merge -q --ff-only atoll/main")
	if offer, err := s.Commits(t.Context(), ""); err != nil || len(offer.Commits) > 0 {
		t.Errorf("after all was merged: %+v, %v", offer, err)
	}
	s.work("echo z > z && " + commit + "fourth")
	if taken = s.take(take.Request{Branch: "plain", Unsigned: true}); taken.Signed {
		t.Errorf("%+v", taken)
	}
}

// signs configures the person's git to sign with a key of SSH.
func (s *scene) signs() {
	s.t.Helper()
	s.shell(s.home, `ssh-keygen -q -t ed25519 -N "" -f key -C p && printf 'p@localhost %s\n' "$(cat key.pub)" > signers
git config --global gpg.format ssh && git config --global user.signingkey "$HOME/key.pub" && git config --global commit.gpgsign true`)
}

// A signature that cannot be made takes nothing.
func TestSigningFails(t *testing.T) {
	s := newScene(t, "true")
	s.signs()
	s.work("echo x > x && " + commit + "x")
	if err := os.Remove(filepath.Join(s.home, "key")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(t.Context(), take.Request{}); err == nil || !strings.Contains(err.Error(), "sign commit") {
		t.Errorf("without a key: %v", err)
	}
	if got := s.host("git for-each-ref refs/atoll refs/heads/atoll"); got != "" {
		t.Errorf("the host has %s", got)
	}
}

// A repository comes from anywhere: its configuration names no program for signing.
func TestRepositoryNamesNoProgram(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	hooks := "for h in reference-transaction pre-receive update post-receive post-update post-checkout pre-auto-gc pre-push; do cp " + script + " .git/hooks/$h; done; "
	s := newScene(t, "true")
	s.host(hooks + "for k in gpg.program gpg.ssh.program gpg.openpgp.program gpg.ssh.defaultKeyCommand core.fsmonitor core.alternateRefsCommand uploadpack.packObjectsHook core.sshCommand core.pager; do git config $k " + script + "; done; git config commit.gpgsign true")
	s.work(hooks + "git config core.fsmonitor " + script)
	s.work("rm -f " + ran + "; git -c core.hooksPath=/dev/null -c core.fsmonitor=false commit -q --allow-empty -m x; rm -f " + ran)
	_, err := s.Take(t.Context(), take.Request{})
	if err == nil || errors.Is(err, take.ErrNothing) {
		t.Errorf("signing without a key: %v", err)
	}
	if _, err := s.Take(t.Context(), take.Request{Unsigned: true}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of a repository ran")
	}
}
