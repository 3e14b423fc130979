package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/quarantine"
)

// Sandbox runs programs where an agent works. Everything that comes out of it is hostile.
type Sandbox interface {
	// Exec runs a program inside, as the agent's user and in its environment. It
	// fails with ErrProgram if the program does, or takes too long.
	Exec(ctx context.Context, c *machine.Command) error
}

// Site is a sandbox and the paths in it.
type Site struct {
	Sandbox Sandbox
	Root    string // /workspace
	Link    string // the name below Root that leads to the work: repo, or current
	// Shared says that other runs may prepare work in the same sandbox.
	Shared bool
	// Name is the agent's name in its commits; "" is agent.
	Name string
}

// Worktree returns the path of a branch's worktree.
func (s Site) Worktree(key branch.Key) string { return branch.Worktree(s.Root, key) }

func (s Site) repo() string { return path.Join(s.Root, ".relay.git") }
func (s Site) link() string { return path.Join(s.Root, s.Link) }
func (s Site) inRepo(args ...string) []string {
	return append([]string{"git", "-C", s.repo()}, args...)
}
func in(worktree string, args ...string) []string {
	return append([]string{"git", "-C", worktree}, args...)
}

// maxAnswer bounds the output of a program that output runs.
const maxAnswer = 64 << 10

// output runs a program inside and returns its standard output, trimmed.
func (s Site) output(ctx context.Context, argv []string) (string, error) {
	var out bytes.Buffer
	kept := &confined.Bounded{To: &out, Left: maxAnswer}
	err := s.Sandbox.Exec(ctx, &machine.Command{Argv: argv, Dir: "/", Stdout: kept})
	if kept.Exceeded {
		return "", fmt.Errorf("%s: %w", argv[0], confined.ErrTooMuch)
	}
	return strings.TrimSpace(out.String()), err
}

// run runs programs inside, one after the other.
func (s Site) run(ctx context.Context, commands ...[]string) error {
	for _, argv := range commands {
		if _, err := s.output(ctx, argv); err != nil {
			return fmt.Errorf("in the sandbox: %s: %w", strings.Join(argv[:min(5, len(argv))], " "), err)
		}
	}
	return nil
}

// ErrProgram means that a program inside failed, which the agent can cause; other
// errors are failures of the sandbox.
var ErrProgram = errors.New("a program in the sandbox failed")

// ErrRefused means that the commits cannot be taken, now or later.
var ErrRefused = quarantine.ErrRefused

var errNoGit = errors.New("the sandbox has no git")
