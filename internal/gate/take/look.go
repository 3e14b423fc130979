package take

import (
	"bytes"
	"context"
	_ "embed" // the program that looks
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
)

//go:embed look.sh
var lookScript string

// maxLook bounds the answer of look.sh.
const maxLook = 256 << 10

// inside is what the repository in the sandbox says of itself. None of it is
// believed: it says what to ask for.
type inside struct {
	head     string // the commit that is checked out; "" if there is none
	ref      string // the branch that is checked out; "" if HEAD is detached
	branches map[string]string
}

var errLook = errors.New("the sandbox's answer about its repository cannot be read")

// look asks for what is checked out, and for the branches.
func (w *Workspace) look(ctx context.Context) (*inside, error) {
	var out bytes.Buffer
	kept := &confined.Bounded{To: &out, Left: maxLook}
	err := w.Sandbox.Exec(ctx, &machine.Command{Argv: []string{"sh", "-c", lookScript, "look", w.Dir}, Dir: "/", Stdout: kept})
	if kept.Exceeded {
		return nil, fmt.Errorf("look at the repository in the sandbox: %w", confined.ErrTooMuch)
	}
	if err != nil {
		return nil, fmt.Errorf("look at the repository in the sandbox: %w", err)
	}
	return parseLook(out.String())
}

func parseLook(text string) (*inside, error) {
	found := &inside{branches: map[string]string{}}
	seen := false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && words[0] == "no-git":
			return nil, errhint.With(ErrNoGit, "use an image with git")
		case len(words) == 1 && words[0] == "no-repository":
			return nil, errhint.With(ErrNoRepository, "the agent removed or broke it; `atoll sync review` shows the files")
		case len(words) != 3 || words[1] != "-" && !checkout.IsID(words[1]) || words[2] != "-" && !isBranchRef(words[2]):
			return nil, errLook
		case words[0] == "head":
			found.head, found.ref, seen = strings.TrimPrefix(words[1], "-"), strings.TrimPrefix(words[2], "-"), true
		case words[0] == "branch":
			found.branches[words[2]] = words[1]
		default:
			return nil, errLook
		}
	}
	if !seen {
		return nil, errLook
	}
	return found, nil
}
