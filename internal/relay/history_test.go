package relay_test

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// grow adds commits to the server's main, each with a version of one file, a
// second line of work and its merge.
func (h *host) grow(versions ...string) {
	h.t.Helper()
	var stream strings.Builder
	person := "committer Owner <owner@example.com> %d +0000\n"
	for i, version := range versions {
		fmt.Fprintf(&stream, "commit refs/heads/main\n"+person+"data 1\nx\n", 1_700_000_000+i)
		if i == 0 {
			fmt.Fprintf(&stream, "from refs/heads/main^0\n")
		}
		fmt.Fprintf(&stream, "M 644 inline version\ndata %d\n%s\n\n", len(version), version)
	}
	cmd := exec.CommandContext(h.t.Context(), "git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = h.server.Dir("project.git"), strings.NewReader(stream.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
}

func (p *sandbox) commits(t *testing.T, dir string) int {
	t.Helper()
	n, err := strconv.Atoi(p.git(t, dir, "rev-list", "--count", "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// whole checks that nothing that the sandbox should have is missing.
func (p *sandbox) whole(t *testing.T, dir string) {
	t.Helper()
	if out := p.git(t, dir, "fsck", "--connectivity-only", "--no-dangling"); out != "" {
		t.Errorf("git fsck: %s", out)
	}
}

// A sandbox gets the last commits only; what is committed on them is judged and
// pushed as ever, on the whole history that the host has. A sandbox that stays is
// brought up to date, also with what was long ago and comes back.
func TestPartialHistory(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	versions := make([]string, 30)
	for i := range versions {
		versions[i] = fmt.Sprintf("version %d", i)
	}
	h.grow(versions...)
	h.project.History = 5
	w := h.prepare(p, "one")
	if n := p.commits(t, w.Dir); n != 5 {
		t.Errorf("the sandbox has %d commits", n)
	}
	p.whole(t, w.Dir)
	p.work(t, "on it", map[string]string{"new": "1"})
	h.send(h.take(p, w, "run-1"))
	if got := h.server.Git(t, "project.git", "rev-list", "--count", "sandbox/one"); got != "32" { // 31 and the agent's
		t.Errorf("the branch has %s commits", got)
	}
	h.grow("version 2", "version 31", "version 3") // as they were, and have not been for long
	w = h.prepare(p, "two")
	p.whole(t, w.Dir)
	if n := p.commits(t, w.Dir); n > 10 {
		t.Errorf("the sandbox has %d commits", n)
	}
	p.work(t, "on that", map[string]string{"new": "2"})
	h.send(h.take(p, w, "run-2"))
	w = h.prepare(p, "one") // the first line of work goes on
	p.whole(t, w.Dir)
	p.work(t, "once more", map[string]string{"new": "3"})
	h.send(h.take(p, w, "run-3"))
	if got := h.server.Git(t, "project.git", "log", "--format=%s", "main..sandbox/one"); got != "once more\non it" {
		t.Errorf("the branch has %q", got)
	}
}

// All of the history is what 0 means.
func TestWholeHistory(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	h.grow("a", "b", "c")
	w := h.prepare(p, "one")
	if n := p.commits(t, w.Dir); n != 4 || p.git(t, w.Dir, "rev-parse", "--is-shallow-repository") != "false" {
		t.Errorf("%d commits", n)
	}
}

// A sandbox that lies about what it has gets what it needs, or harms itself; the
// host's own repository is never cut.
func TestLiesAboutHistory(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	h.grow("a", "b", "c", "d")
	h.project.History = 2
	w := h.prepare(p, "one")
	for name, argv := range map[string][]string{
		"ends that are no ids":     {"sh", "-c", "echo --all > " + p.root + "/.relay.git/shallow"},
		"ends that are unknown":    {"sh", "-c", "echo " + strings.Repeat("1", 40) + " > " + p.root + "/.relay.git/shallow"},
		"a seed that is no commit": {"git", "-C", p.root + "/.relay.git", "update-ref", "refs/atoll/seed", p.git(t, w.Dir, "rev-parse", "HEAD^{tree}")},
	} {
		t.Run(name, func(t *testing.T) {
			if err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).Run(); err != nil {
				t.Fatal(err)
			}
			h.grow("e " + name)
			w := h.prepare(p, "one")
			p.work(t, name, map[string]string{"new": name})
			h.send(h.take(p, w, strings.ReplaceAll(name, " ", "-")))
		})
	}
	if got := h.server.Git(t, "project.git", "rev-list", "--count", "main"); got != "8" {
		t.Errorf("main has %s commits", got)
	}
}
