package take_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// Repositories of every layout give and take commits: linked work trees,
// submodules, unborn branches, shallow and packed ones, borrowed objects.
func TestLayouts(t *testing.T) {
	for name, c := range map[string]struct {
		host, top, work, branch string
	}{
		"linked work tree": {host: "git worktree add -q -b side ../linked", top: "../linked", work: "git checkout -q -b fix", branch: "fix"},
		"submodule":        {host: "git clone -q . ../super; cd ../super; git -c protocol.file.allow=always submodule add -q $OLDPWD sub; git config -f .git/modules/sub/config user.name p; git config -f .git/modules/sub/config user.email p@localhost", top: "../super/sub", branch: "atoll/main"},
		"superproject":     {host: "git clone -q . ../other; git -c protocol.file.allow=always submodule add -q $PWD/../other sub; " + commit + "sub", work: "git -C sub -c user.name=a -c user.email=a@localhost commit -q --allow-empty -m inner", branch: "atoll/main"},
		"shallow":          {host: commit + "two --allow-empty; git clone -q --depth 1 file://$PWD ../shallow; git -C ../shallow config user.name p; git -C ../shallow config user.email p@localhost", top: "../shallow", branch: "atoll/main"},
		"borrowed":         {host: "git clone -q --shared . ../borrowed; git -C ../borrowed config user.name p; git -C ../borrowed config user.email p@localhost", top: "../borrowed", branch: "atoll/main"},
		"packed":           {host: "git tag -a -m t v1; git tag blob HEAD:a; git gc -q; git pack-refs --all", branch: "atoll/main"},
		"unborn":           {host: "git init -q ../unborn; git -C ../unborn config user.name p; git -C ../unborn config user.email p@localhost", top: "../unborn", work: "echo a > a; echo b > b", branch: "atoll/master"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, c.host)
			if c.top != "" {
				s.moveTo(filepath.Join(s.top, c.top))
			}
			s.work(or(c.work, "true") + "; echo new > new; git add new; git commit -qam new")
			head := s.shell(s.agent.dir, "git rev-parse HEAD")
			taken, err := s.Take(t.Context(), take.Request{})
			if name == "superproject" {
				offer, failed := s.Commits(t.Context(), "")
				if err == nil || failed != nil || offer.Verdict != "approval" {
					t.Fatalf("%v, %+v, %v", err, offer, failed)
				}
				taken, err = s.Take(t.Context(), take.Request{Approved: true, Head: offer.Head})
			}
			if err != nil || taken.Head != head || taken.Branch != c.branch {
				t.Fatalf("%+v, %v", taken, err)
			}
			if got := s.host("git rev-parse " + c.branch + " && git show " + c.branch + ":new && git fsck 2>&1 | grep -v '^notice:\\|^dangling' || true"); got != head+"\nnew" {
				t.Errorf("the host says %s", got)
			}
		})
	}
}

// moveTo makes another work tree the person's, and gives the agent a copy in which
// the repository is where a sandbox shows it.
func (s *scene) moveTo(top string) {
	s.t.Helper()
	c, err := checkout.At(top)
	if err != nil {
		s.t.Fatal(err)
	}
	s.top, s.Checkout = top, c
	s.shell("/", "rm -rf '"+s.agent.dir+"' && cp -a '"+top+"' '"+s.agent.dir+"'")
	seen := checkout.InsideOf(top, s.agent.dir)
	git, target := seen.GitTree()
	if git == "" {
		return
	}
	s.shell("/", "cp -a '"+git+"' '"+target+"'")
	file, err := seen.WorkTree(".git", nil)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.agent.dir, ".git"), file.Instead, 0o600)
	}
	config := filepath.Join(target, "config")
	text, failed := os.ReadFile(config)
	if err != nil || failed != nil {
		s.t.Fatal(err, failed)
	}
	shown, err := seen.GitFile("config", func(int64) ([]byte, error) { return text, nil })
	if err == nil {
		err = os.WriteFile(config, shown.Instead, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// A sandbox whose git lies gets nothing in.
func TestHostileSandbox(t *testing.T) {
	other := newScene(t, "true")
	other.work("git checkout -q --orphan foreign; echo f > f; " + commit + "foreign")
	foreign := other.shell(other.agent.dir, "git rev-parse HEAD")
	bundle := filepath.Join(t.TempDir(), "bundle")
	other.work("git bundle create -q " + bundle + " HEAD")
	id := strings.Repeat("1", 40)
	for name, c := range map[string]struct {
		look, bundle, want string // shell commands in place of ours
	}{
		"no git":                  {look: "echo no-git", want: "has no git"},
		"no repository":           {look: "echo no-repository", want: "no repository"},
		"nonsense":                {look: "echo hello there", want: "cannot be read"},
		"nothing":                 {look: "true", want: "cannot be read"},
		"flood":                   {look: "yes head", want: "more output than allowed"},
		"ref with a path":         {look: "echo head " + id + " refs/heads/../../config", want: "cannot be read"},
		"ref with an escape":      {look: "printf 'head " + id + " refs/heads/\\033[31m\\n'", want: "cannot be read"},
		"ref that is an option":   {look: "echo head " + id + " --upload-pack=x", want: "cannot be read"},
		"another bundle":          {look: "echo head " + id + " refs/heads/main", bundle: "cat " + bundle, want: "changed meanwhile"},
		"no bundle":               {look: "echo head " + id + " refs/heads/main", bundle: "echo hello", want: "not a bundle"},
		"a bundle without a pack": {look: "echo head " + id + " refs/heads/main", bundle: "printf '# v2 git bundle\\n" + id + " HEAD\\n\\n'", want: "cannot be taken over"},
		"a commit of others":      {look: "echo head " + foreign + " refs/heads/main", bundle: "printf '# v2 git bundle\\n-" + id + "\\n" + foreign + " HEAD\\n\\n'; tail -c +60 " + bundle, want: "cannot be taken over"},
		"endless":                 {look: "echo head " + id + " refs/heads/main", bundle: "printf '# v2 git bundle\\n" + id + " HEAD\\n\\nPACK'; cat /dev/zero", want: "cannot be taken over"},
		"fails":                   {look: "false", want: "look at the repository"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "true")
			s.MaxBytes = 1 << 20
			before := s.tree()
			s.agent.instead = func(command *machine.Command) *machine.Command {
				own := *command
				own.Argv = []string{"sh", "-c", c.look}
				if command.Argv[0] == "git" {
					own.Argv[2] = c.bundle
				}
				return &own
			}
			if _, err := s.Take(t.Context(), take.Request{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := s.tree() + s.host("git for-each-ref | wc -l; find .git/objects -name '*.pack' | wc -l"); after != before+"1\n0" {
				t.Errorf("the host was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

// Objects that git's own checks refuse do not enter, nor what is not whole.
func TestForgedObjects(t *testing.T) {
	for name, work := range map[string]string{
		"a tree with .git":         `t=$(printf '100755 blob %s\tpre-commit\n' $(echo x | git hash-object -w --stdin) | git mktree); t=$(printf '040000 tree %s\t.git\n' $t | git mktree); git update-ref HEAD $(git commit-tree -p HEAD -m x $t)`,
		"a tree with .GIT":         `t=$(printf '040000 tree %s\t.GIT\n' $(git rev-parse HEAD^{tree}) | git mktree); git update-ref HEAD $(git commit-tree -p HEAD -m x $t)`,
		"a tree with ..":           `t=$(printf '040000 tree %s\t..\n' $(git rev-parse HEAD^{tree}) | git mktree); git update-ref HEAD $(git commit-tree -p HEAD -m x $t)`,
		"a commit without a tree":  `c=$(printf 'tree %s\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n' 1234567890123456789012345678901234567890 | git hash-object -t commit -w --literally --stdin); echo $c > .git/refs/heads/main`,
		"a missing blob":           `echo secret > m; ` + commit + `m; rm -f .git/objects/$(git rev-parse HEAD:m | sed 's|^..|&/|')`,
		"a malformed commit":       `c=$(printf 'tree %s\nauthor x\n\nx\n' $(git rev-parse HEAD^{tree}) | git hash-object -t commit -w --literally --stdin); echo $c > .git/refs/heads/main`,
		"alternates of the host":   `echo /etc > .git/objects/info/alternates; git init -q ../out; cd ../out; echo o > o; git add o; b=$(git write-tree); cd - >/dev/null; echo $PWD/../out/.git/objects >> .git/objects/info/alternates; git update-ref HEAD $(git commit-tree -p HEAD -m x $b); rm -rf ../out`,
		"a replaced commit":        `c=$(git commit-tree -p HEAD -m hidden HEAD^{tree}); echo k > k; git add k; git commit -qm "$(printf 'aws\naws_access_key_id = AKIAQ3EGPIQZ5PWNMGTX')"; git replace HEAD $c`,
		"a graft":                  `echo k > k; ` + commit + `one; echo 'aws_access_key_id = AKIAQ3EGPIQZ5PWNMGTX' > k; ` + commit + `two; rm k; ` + commit + `three; printf '%s %s\n' $(git rev-parse HEAD HEAD~3) > .git/info/grafts`,
		"an odd mode":              `t=$(printf '100666 blob %s\tf\n' $(echo x | git hash-object -w --stdin) | git mktree --missing 2>/dev/null || true); printf '100666 f\0' > raw; echo x | git hash-object -w --stdin | xxd -r -p >> raw; t=$(git hash-object -t tree -w --literally raw); git update-ref HEAD $(git commit-tree -p HEAD -m x $t); rm raw`,
		"a huge message":           `head -c 200000 /dev/zero | tr '\0' x > ../message; git commit -q --allow-empty -F ../message`,
		"a name over many screens": `git -c user.name="$(head -c 100000 /dev/zero | tr '\0' x)" commit -q --allow-empty -m "$(head -c 70000 /dev/zero | tr '\0' y)"`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "true")
			before := s.tree()
			s.work(work)
			taken, err := s.Take(t.Context(), take.Request{})
			if err == nil {
				t.Fatalf("it was taken: %+v", taken)
			}
			if after := s.tree() + s.host("git for-each-ref | wc -l"); after != before+"1" {
				t.Errorf("the host was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

// What is shown of a commit does nothing to a terminal.
func TestCommitsArePrintable(t *testing.T) {
	s := newScene(t, "true")
	s.work(`git -c user.name="$(printf 'a\033[31m\nb')" commit -q --allow-empty -m "$(printf 'x\033]0;title\007y\n\nbody')"`)
	offer, err := s.Commits(t.Context(), "")
	if err != nil || len(offer.Commits) != 1 {
		t.Fatalf("%+v, %v", offer, err)
	}
	c := offer.Commits[0]
	if text := c.Subject + c.Author; strings.ContainsAny(text, "\x1b\x07\n") || !strings.Contains(c.Subject, "x") {
		t.Errorf("%q by %q", c.Subject, c.Author)
	}
}

// Quarantines of earlier commits go, and one that another process filled is used.
func TestQuarantinesAreBounded(t *testing.T) {
	need.Time(t, "it takes many commits")
	s := newScene(t, "true")
	for i := range 8 {
		s.work(fmt.Sprintf("git commit -q --allow-empty -m %d", i))
		for range 2 {
			if offer, err := s.Commits(t.Context(), ""); err != nil || len(offer.Commits) != i+1 {
				t.Fatalf("%+v, %v", offer, err)
			}
		}
	}
	dirs, err := filepath.Glob(filepath.Join(s.State, "*.git"))
	if err != nil || len(dirs) > 5 {
		t.Errorf("%d quarantines are left, %v", len(dirs), err)
	}
	var log bytes.Buffer
	s.agent.instead = func(c *machine.Command) *machine.Command {
		fmt.Fprintln(&log, c.Argv[0])
		return c
	}
	if _, err := s.Commits(t.Context(), ""); err != nil || strings.Contains(log.String(), "git") {
		t.Errorf("what is there was fetched again: %v", err)
	}
}
