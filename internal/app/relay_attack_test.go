package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// planted is what an agent writes into its own repository so that git on the host
// would run a program of its choice, or show what it should not.
type planted struct {
	name  string
	plant string // inside, in the worktree; TRIP, SECRET, PRIVATE and WS are paths of the host
	// naive is what a host would do that enters the repository: the attack works
	// there, or it shows nothing. GIT_DIR is the repository, W the worktree.
	naive string
	shows string // what naive then prints; "" if it runs the program
	step  relay.Step
}

// delBlob loses a blob of the last commit, so that git asks for it elsewhere.
const delBlob = `b=$(git rev-parse HEAD:new); rm -f /workspace/.relay.git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-)
git config core.repositoryformatversion 1; git config remote.evil.promisor true; git config extensions.partialClone evil
`

func plantings() []planted {
	return []planted{
		{"a monitor of files", `git config core.fsmonitor 'touch TRIP #'`, `git --work-tree=$W status`, "", relay.Done},
		{"another diff", `git config diff.external 'touch TRIP #'`, `git diff $B~1 $B`, "", relay.Done},
		{"attributes and a converter", `mkdir -p /workspace/.relay.git/info; echo '* diff=x' > /workspace/.relay.git/info/attributes; git config diff.x.textconv 'touch TRIP #'`, `git show $B`, "", relay.Done},
		{"attributes and a filter", `mkdir -p /workspace/.relay.git/info; echo '* filter=x' > /workspace/.relay.git/info/attributes; git config filter.x.clean 'touch TRIP #'`, `git --work-tree=$W add -A`, "", relay.Done},
		{"tracked attributes", `echo '* diff=x' > .gitattributes; git add -A; AGENT commit -qm attributes; git config diff.x.textconv 'touch TRIP #'`, `cd $W && git --work-tree=$W show $B`, "", relay.Waiting},
		{"a checker of signatures", `c=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----' | git hash-object -t commit -w --stdin) && git update-ref HEAD $c
git config log.showSignature true; git config gpg.program TRIP.sh`, `git log -1 $B`, "", relay.Done},
		{"hooks", `mkdir -p /workspace/hooks; for h in post-checkout reference-transaction pre-push post-index-change; do printf '#!/bin/sh\ntouch TRIP\n' > /workspace/hooks/$h; chmod +x /workspace/hooks/$h; done
git config core.hooksPath WS/hooks`, `git --work-tree=$W checkout -qf $B`, "", relay.Done},
		{"a remote that promises, by ext", delBlob + `git config remote.evil.url 'ext::touch TRIP'; git config protocol.ext.allow always`, `git bundle create - $B ^$B~1`, "", ""},
		{"a remote that promises, by ssh", delBlob + `git config remote.evil.url ssh://evil/x; git config core.sshCommand 'touch TRIP #'`, `git format-patch --stdout -1 $B`, "", ""},
		{"a protocol that is allowed by name", delBlob + `git config remote.evil.url ssh://evil/x; git config core.sshCommand 'touch TRIP #'; git config protocol.ssh.allow always`, `git -c protocol.allow=never bundle create - $B ^$B~1`, "", ""},
		{"a file as the signature of patches", `git config format.signatureFile SECRET`, `git format-patch --stdout -1 $B`, "host-only", relay.Done},
		{"objects of another repository", `echo PRIVATE/.git/objects > /workspace/.relay.git/objects/info/alternates
t=$(printf '100644 blob BLOB\tstolen\n' | git mktree --missing) && git update-ref HEAD $(AGENT commit-tree -p HEAD -m x $t)`, `git cat-file -p $B:stolen`, "host-only", ""},
		{"another work tree", `git config core.bare false; git config core.worktree HOSTDIR`, `git add -An secret`, "add 'secret'", ""},
		{"a worktree that is another repository's", `echo 'gitdir: PRIVATE/.git' > .git`, `cd $W && unset GIT_DIR && git -c safe.directory='*' log --format=%s`, "private words", relay.Done},
		{"a repository that is another's", `mv /workspace/.relay.git /workspace/moved; echo 'gitdir: PRIVATE/.git' > /workspace/.relay.git`, `cd $W/../.. && unset GIT_DIR && git --git-dir=.relay.git log --format=%s`, "private words", ""},
		{"a repository of another user", `true`, `cd $GIT_DIR && unset GIT_DIR && GIT_TEST_ASSUME_DIFFERENT_OWNER=1 git log 2>&1 || true`, "dubious ownership", relay.Done},
	}
}

// arena is a host with something to lose.
type arena struct {
	*relayStage
	host, trip, secret, private, blob string
}

func newArena(t *testing.T) *arena {
	t.Helper()
	s := newRelayStage(t)
	a := &arena{relayStage: s, host: filepath.Join(s.dir, "host"), trip: filepath.Join(s.dir, "executed")}
	a.secret, a.private = filepath.Join(a.host, "secret"), filepath.Join(a.host, "private")
	s.mkdir(a.private)
	s.write(a.secret, "host-only words\n")
	s.write(a.trip+".sh", "#!/bin/sh\ntouch "+a.trip+"\n")
	if err := os.Chmod(a.trip+".sh", 0o755); err != nil {
		t.Fatal(err)
	}
	a.naive(nil, `cd `+a.private+` && git init -q && cp ../secret . && git add -A && git -c user.name=p -c user.email=p@example.com commit -qm 'private words'`)
	a.blob = strings.TrimSpace(a.naive(nil, `git -C `+a.private+` rev-parse HEAD:secret`))
	return a
}

// naive is the host as it should not be.
func (a *arena) naive(env []string, script string) string {
	cmd := exec.CommandContext(a.t.Context(), "/bin/sh", "-c", script)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.host, "GIT_CONFIG_NOSYSTEM=1", "TMPDIR=" + os.TempDir()}, env...)
	out, _ := cmd.CombinedOutput() // what it does counts, not how it ends
	return string(out)
}

func (a *arena) tripped() bool {
	_, err := os.Stat(a.trip)
	return os.Remove(a.trip) == nil || err == nil
}

// tree is everything that a host could lose, by name and contents.
func (a *arena) tree() string {
	return a.naive(nil, "cd "+a.host+" && find . -path ./private/.git/index -prune -o -type f -print0 | sort -z | xargs -0 sha256sum; ls "+a.dir)
}

// TestAttack32_HostGitInTheAgentsRepository plants what makes git act in a
// repository that an agent can write, in a real sandbox. Each works against a host
// that enters it; ours takes the commits, executes nothing, writes nothing outside
// of its own directory, and shows nothing.
func TestAttack32_HostGitInTheAgentsRepository(t *testing.T) {
	a := newArena(t)
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1") // nothing that the host takes in depends on owners
	before := a.tree()
	attacks := plantings()
	for i, attack := range attacks[:need.Rounds(4, len(attacks))] {
		t.Run(attack.name, func(t *testing.T) {
			defer func(outer *testing.T) { a.t = outer }(a.t)
			a.t = t
			a.attack(&attack, branch.Key("k"+string(rune('a'+i))))
			if after := a.tree(); after != before {
				t.Errorf("the host was\n%s\nand is\n%s", before, after)
			}
		})
	}
	if got := a.server.Git(t, "org/project", "log", "--all", "--format=%s%b", "--name-only"); strings.Contains(got, "stolen") || strings.Contains(got, "private") {
		t.Errorf("pushed: %s", got)
	}
}

func (a *arena) attack(p *planted, key branch.Key) {
	t := a.t
	box, w := a.prepare("one", key)
	defer func() { sh(t, box, "cd /; rm -rf /workspace/* /workspace/.relay.git"); box.Release() }()
	ws := filepath.Dir(a.inWorkspace(".relay.git"))
	words := strings.NewReplacer("TRIP", a.trip, "SECRET", a.secret, "PRIVATE", a.private, "WS", ws, "BLOB", a.blob, "HOSTDIR", a.host, "AGENT", asAgent)
	sh(t, box, "cd "+w.Dir+" && echo x > new && git add -A && "+asAgent+"commit -qm work\n"+words.Replace(p.plant))
	out := a.naive([]string{"GIT_DIR=" + filepath.Join(ws, ".relay.git"), "W=" + filepath.Join(ws, "wt", string(key)), "B=refs/heads/" + key.Branch()}, p.naive)
	if tripped := a.tripped(); tripped != (p.shows == "") || !strings.Contains(out, p.shows) {
		t.Fatalf("the attack does not work: executed %v, shows %s", tripped, out)
	}
	run := "run-" + string(key)
	record, err := a.relays.Take(t.Context(), a.project(), deliver.Site(box), &relay.TakeRequest{Run: run, Work: *w})
	if err == nil {
		err = a.app.Commits.Send(t.Context(), record)
	}
	if a.tripped() {
		t.Error("a program was run on the host")
	}
	if p.step == "" {
		if err == nil {
			t.Errorf("it was taken: %+v", record)
		}
		return
	}
	if err != nil || record.Step != p.step {
		t.Fatalf("%+v, %v", record, err)
	}
	if text, err := a.relays.LoadPatch(record); err != nil || strings.Contains(string(text), "host-only") {
		t.Errorf("%v, the patch is %s", err, text)
	}
	if got := a.server.Git(t, "org/project", "log", "--all", "--format=%GK%GS%s"); p.step == relay.Done && !strings.Contains(got, "work") {
		t.Errorf("the server has %s", got)
	}
}
