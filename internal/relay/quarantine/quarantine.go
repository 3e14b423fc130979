// Package quarantine takes commits that an agent made into a repository where
// they can be looked at and do nothing: bare, ours, read by no person and by no
// program but the relay. Objects that git's own checks refuse never enter, and
// nothing is taken that is not whole.
package quarantine

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// MaxBytes is how large a bundle may be if nothing else is said.
const MaxBytes = 64 << 20

// ErrRefused means that a bundle is not taken for what it is; the same one will
// not be another time. ErrTooLarge is the refusal of one with more bytes than it
// may have.
var (
	ErrRefused  = errors.New("the commits cannot be taken over")
	ErrTooLarge = fmt.Errorf("%w: they are larger than allowed", ErrRefused)
)

// Import reads a bundle of at most limit bytes into a repository that has base
// (or borrows it), and returns its head. The head descends from base, and all
// that it needs is there. On an error the repository is to be thrown away.
func Import(ctx context.Context, repo *git.Repo, base string, bundle io.Reader, limit int64) (head string, err error) {
	head, err = read(ctx, repo, bundle, limit)
	if err == nil {
		err = checkGraph(ctx, repo, base, head)
	}
	return head, err
}

// ImportBeside is Import for commits that need not descend from one: all that the
// head needs is there, or is a part of the known commits, which the repository
// has.
func ImportBeside(ctx context.Context, repo *git.Repo, known []string, bundle io.Reader, limit int64) (head string, err error) {
	head, err = read(ctx, repo, bundle, limit)
	if err == nil {
		err = concurrently(
			func() error { return isCommit(ctx, repo, head) },
			func() error { return connected(ctx, repo, known, head) })
	}
	return head, err
}

// read unpacks a bundle and returns its head.
func read(ctx context.Context, repo *git.Repo, bundle io.Reader, limit int64) (head string, err error) {
	counted := &limitedReader{from: bundle, left: limit}
	from := bufio.NewReaderSize(counted, maxHeader)
	h, err := readHeader(from)
	if err != nil {
		return "", refuse(err)
	}
	err = concurrently(
		func() error { return checkNeeds(ctx, repo, h.Needs) },
		func() error { return unpack(ctx, repo, from, limit) })
	if counted.exceeded {
		return "", fmt.Errorf("%w (%d bytes)", ErrTooLarge, limit)
	}
	return h.Head, err
}

func refuse(err error) error { return fmt.Errorf("%w: %w", ErrRefused, err) }

// refuseIfAgents makes a failure of git a refusal of the commits, unless the host
// caused it: a full disk, a process that could not be started.
func refuseIfAgents(ctx context.Context, err error) error {
	failed, ended := errors.AsType[*confined.Error](err)
	if !ended || ctx.Err() != nil || strings.Contains(failed.Message, "No space left on device") {
		return err
	}
	return refuse(err)
}

func checkNeeds(ctx context.Context, repo *git.Repo, needs []string) error {
	if len(needs) == 0 {
		return nil
	}
	objects, err := repo.Stat(ctx, needs)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.Type != "commit" {
			return refuse(fmt.Errorf("they build on %s, which is not here", object.ID))
		}
	}
	return nil
}

// unpack checks every object as strictly as a server checks a push: a fetch would
// not. Odd file modes, for which git only warns, are refused as well: git later
// shows them as usual ones.
func unpack(ctx context.Context, repo *git.Repo, pack io.Reader, limit int64) error {
	_, err := repo.Output(ctx, pack, "index-pack", "--stdin", "--strict=badFilemode=error", "--fix-thin", fmt.Sprintf("--max-input-size=%d", limit))
	return refuseIfAgents(ctx, err)
}

// checkGraph checks that the head is a commit, descends from base and is complete.
func checkGraph(ctx context.Context, repo *git.Repo, base, head string) error {
	return concurrently(
		func() error { return isCommit(ctx, repo, head) },
		func() error { return descends(ctx, repo, base, head) },
		func() error { return connected(ctx, repo, []string{base}, head) })
}

func isCommit(ctx context.Context, repo *git.Repo, head string) error {
	objects, err := repo.Stat(ctx, []string{head})
	if err != nil {
		return err
	}
	if objects[0].Type != "commit" {
		return refuse(fmt.Errorf("the head %s is no commit", head))
	}
	return nil
}

func descends(ctx context.Context, repo *git.Repo, base, head string) error {
	does, err := repo.Descends(ctx, base, head)
	if err != nil {
		return refuseIfAgents(ctx, err)
	}
	if !does {
		return refuse(fmt.Errorf("the head %s does not descend from %s", short(head), short(base)))
	}
	return nil
}

func connected(ctx context.Context, repo *git.Repo, known []string, head string) error {
	if err := repo.CheckComplete(ctx, known, head); err != nil {
		return refuseIfAgents(ctx, fmt.Errorf("something that %s needs is missing: %w", short(head), err))
	}
	return nil
}

// concurrently runs all checks and returns the first error, in this order: each is
// a process that mostly waits to be started and to end.
func concurrently(checks ...func() error) error {
	failed := make([]error, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() { failed[i] = check() })
	}
	all.Wait()
	return cmp.Or(failed...)
}

func short(id string) string { return strings.ToLower(id[:min(len(id), 12)]) }

// limitedReader reads at most left bytes and fails if there are more.
type limitedReader struct {
	from     io.Reader
	left     int64
	exceeded bool
}

func (c *limitedReader) Read(p []byte) (int, error) {
	if c.left < 0 {
		c.exceeded = true
		return 0, ErrTooLarge
	}
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.from.Read(p)
	c.left -= int64(n)
	return n, err
}
