package relay

import (
	"cmp"
	"context"
	_ "embed" // the program that collects
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/git"
)

//go:embed collect.sh
var collectScript string

// maxPieces is how many pieces of work beside the branch are taken from one run.
const maxPieces = 8

// piece is work that is not on the branch: a commit, and what it is.
type piece struct {
	what, head string
	number     int // from 1
}

func (p piece) ref() string { return "refs/atoll/left/" + p.head }

// collected is what collect.sh found in the sandbox.
type collected struct {
	head      string // where the branch is now; "" if the script did not say
	pieces    []piece
	committed bool     // the branch ends with a commit of what was not committed
	notes     []string // what was done to the branch
	unsaved   bool     // there are files that no commit can hold
}

// collect commits what an agent left uncommitted and finds commits that are not
// on its branch. It runs in the sandbox, so its answer is not trusted.
func (s Site) collect(ctx context.Context, w *Work, run string) (*collected, error) {
	out, err := s.output(ctx, []string{"sh", "-c", collectScript, "collect", w.Dir, s.repo(), w.Key.Ref(), w.Tip(), run})
	if err != nil {
		return nil, fmt.Errorf("look for uncommitted work: %w", err)
	}
	var g collected
	for line := range strings.Lines(out) {
		if err := g.parseLine(strings.Fields(line), w.Before); err != nil {
			return nil, err
		}
	}
	return &g, nil
}

var errCollected = errors.New("look for uncommitted work: the answer cannot be read")

// parseLine reads one line of the answer: kind, commit and name.
func (g *collected) parseLine(words, before []string) error {
	if len(words) == 1 && words[0] == "unsaved" {
		g.unsaved = true
		return nil
	}
	if len(words) != 3 || !git.IsID(words[1]) {
		return errCollected
	}
	kind, head, name := words[0], words[1], words[2]
	if kind == "head" {
		g.head = head
		return nil
	}
	if slices.Contains(before, head) || slices.Contains(before, name) {
		return nil
	}
	switch kind {
	case "moved":
		g.notes = append(g.notes, "the agent ended on "+quotedRef(name)+"; its commits are taken as the branch")
	case "committed":
		g.committed = true
		g.notes = append(g.notes, "the agent did not commit; Atoll did, in a commit of its own")
	case "uncommitted", "stash", "detached", "branch":
		g.addPiece(pieceDescription(kind, name), head)
	default:
		return errCollected
	}
	return nil
}

// addPiece adds a piece, unless another one has the same commit.
func (g *collected) addPiece(what, head string) {
	if !slices.ContainsFunc(g.pieces, func(p piece) bool { return p.head == head }) {
		g.pieces = append(g.pieces, piece{what, head, len(g.pieces) + 1})
	}
}

func pieceDescription(kind, name string) string {
	switch kind {
	case "uncommitted":
		return "uncommitted changes"
	case "stash":
		return "stashed changes"
	case "detached":
		return "commits on a detached HEAD"
	}
	return "commits on " + quotedRef(name)
}

// quotedRef is a ref's short name, bounded and printable.
func quotedRef(ref string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/tags/")
	return fmt.Sprintf("%.100q", name)
}

// existingCommits lists the branches, tags and stashes of the sandbox before the
// work begins: they are not part of it.
func (s Site) existingCommits(ctx context.Context) ([]string, error) {
	const list = `git -C "$1" for-each-ref --format='%(objectname)' refs/heads refs/tags; git -C "$1" log -g --format=%H refs/stash -- 2>/dev/null; exit 0`
	out, err := s.output(ctx, []string{"sh", "-c", list, "sh", s.repo()})
	if errors.Is(err, confined.ErrTooMuch) {
		return nil, nil // then some of it is reported again
	}
	return slices.Compact(slices.Sorted(slices.Values(strings.Fields(out)))), err
}

// key returns the branch that a piece would be pushed to.
func (p piece) key(w *Work) branch.Key {
	suffix := ".left-" + p.head[:12]
	name := string(w.Key)
	name = strings.TrimRight(name[:min(len(name), branch.MaxLength-len(suffix))], "./-_") + suffix
	if key, err := branch.Parse(name); err == nil {
		return key
	}
	return branch.Key(strings.TrimPrefix(suffix, "."))
}

// identityCommands configure git in the sandbox to commit under the agent's name
// and the host's address.
func (s Site) identityCommands(address string) [][]string {
	return [][]string{s.inRepo("config", "user.name", cmp.Or(s.Name, "agent")), s.inRepo("config", "user.email", address)}
}
