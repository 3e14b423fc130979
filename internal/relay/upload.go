package relay

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/relay/git"
)

// upload is a place that gets objects of the mirror.
type upload struct {
	mirror *git.Repo
	site   Site
	depth  int // commits; 0 is all
}

// seedRef is in a place what was brought last.
const seedRef = "refs/atoll/seed"

// maxShallow is how many ends of history a place may have.
const maxShallow = 1000

// uploadCommit sends the objects of a commit, and of so much history as is wanted, that
// the place does not have. What it says it has is believed only where that saves
// work: if it lies, it is the one that lacks something.
func uploadCommit(ctx context.Context, d *upload, tip string) error {
	s := d.site
	if _, err := s.output(ctx, s.inRepo("cat-file", "-e", tip+"^{tree}")); err == nil {
		return nil
	}
	ends, err := d.mirror.ShallowCommits(ctx, tip, d.depth)
	if err != nil {
		return err
	}
	wanted := []string{tip}
	if seed, known := d.seedAndShallow(ctx); seed != "" {
		ends = union(ends, known)
		wanted = append(wanted, "^"+seed)
	}
	if len(ends) > maxShallow {
		ends, wanted = nil, []string{tip} // all of it
	}
	if err := d.sendPack(ctx, wanted, ends); err != nil {
		return fmt.Errorf("put the repository into the sandbox: %w", err)
	}
	if err := d.writeShallow(ctx, ends); err != nil {
		return err
	}
	return s.run(ctx, s.inRepo("update-ref", seedRef, tip))
}

// seedAndShallow is what the place has: a commit, and where the history before it ends.
func (d *upload) seedAndShallow(ctx context.Context) (seed string, ends []string) {
	seed, err := d.site.output(ctx, d.site.inRepo("rev-parse", "--verify", "--quiet", seedRef))
	if err != nil || !d.areCommits(ctx, seed) {
		return "", nil
	}
	if text, err := d.site.output(ctx, []string{"cat", d.shallowFile()}); err == nil {
		ends = strings.Fields(text)
	}
	if len(ends) > maxShallow || !d.areCommits(ctx, ends...) {
		return "", nil
	}
	return seed, ends
}

// areCommits reports whether all of these are commits of the mirror.
func (d *upload) areCommits(ctx context.Context, ids ...string) bool {
	if len(ids) == 0 {
		return true
	}
	if slices.ContainsFunc(ids, func(id string) bool { return !git.IsID(id) }) {
		return false
	}
	objects, err := d.mirror.Stat(ctx, ids)
	return err == nil && !slices.ContainsFunc(objects, func(o git.Object) bool { return o.Type != "commit" })
}

func union(a, b []string) []string {
	all := slices.Sorted(slices.Values(append(slices.Clone(a), b...)))
	return slices.Compact(all)
}

func (d *upload) shallowFile() string { return d.site.repo() + "/shallow" }

// writeShallow writes down in the place where its history ends.
func (d *upload) writeShallow(ctx context.Context, ends []string) error {
	if len(ends) == 0 {
		return d.site.run(ctx, []string{"rm", "-f", d.shallowFile()})
	}
	err := d.site.Sandbox.Exec(ctx, &Command{
		Argv: []string{"sh", "-c", `cat > "$1.new" && mv "$1.new" "$1"`, "sh", d.shallowFile()},
		Dir:  "/", Stdin: strings.NewReader(strings.Join(ends, "\n") + "\n"), Stdout: io.Discard,
	})
	if err != nil {
		return fmt.Errorf("in the sandbox: note where the history ends: %w", err)
	}
	return nil
}

// sendPack lets git outside write a pack and git inside read it, at once.
func (d *upload) sendPack(ctx context.Context, wanted, ends []string) error {
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := d.mirror.WritePack(ctx, in, wanted, ends)
		_ = in.CloseWithError(err) // never fails
		done <- err
	}()
	err := d.site.Sandbox.Exec(ctx, &Command{Argv: d.site.inRepo("index-pack", "--stdin", "--fix-thin"), Dir: "/", Stdin: out, Stdout: io.Discard})
	_ = out.CloseWithError(io.ErrClosedPipe) // never fails
	if sent := <-done; err == nil {
		err = sent
	}
	return err
}
