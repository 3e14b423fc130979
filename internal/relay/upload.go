package relay

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// upload sends objects of the mirror to a sandbox.
type upload struct {
	mirror *git.Repo
	site   Site
	depth  int // commits; 0 is all
}

// seedRef names, in the sandbox, the commit that was sent last.
const seedRef = "refs/atoll/seed"

// maxShallow bounds the shallow commits of a sandbox's repository.
const maxShallow = 1000

// uploadCommit sends the objects of a commit, and of depth commits before it, that
// the sandbox does not have. What the sandbox says it has is used only to send
// less: if it lies, only it lacks objects.
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

// seedAndShallow returns the commit that was sent last and the shallow commits, or
// "" if the sandbox has no usable repository.
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

// writeShallow replaces the sandbox's list of shallow commits.
func (d *upload) writeShallow(ctx context.Context, ends []string) error {
	if len(ends) == 0 {
		return d.site.run(ctx, []string{"rm", "-f", d.shallowFile()})
	}
	err := d.site.Sandbox.Exec(ctx, &machine.Command{
		Argv: []string{"sh", "-c", `cat > "$1.new" && mv "$1.new" "$1"`, "sh", d.shallowFile()},
		Dir:  "/", Stdin: strings.NewReader(strings.Join(ends, "\n") + "\n"), Stdout: io.Discard,
	})
	if err != nil {
		return fmt.Errorf("in the sandbox: note where the history ends: %w", err)
	}
	return nil
}

// sendPack streams a pack from git on the host to git in the sandbox.
func (d *upload) sendPack(ctx context.Context, wanted, ends []string) error {
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := d.mirror.WritePack(ctx, in, wanted, ends)
		_ = in.CloseWithError(err) // never fails
		done <- err
	}()
	err := d.site.Sandbox.Exec(ctx, &machine.Command{Argv: d.site.inRepo("index-pack", "--stdin", "--fix-thin"), Dir: "/", Stdin: out, Stdout: io.Discard})
	_ = out.CloseWithError(io.ErrClosedPipe) // never fails
	if sent := <-done; err == nil {
		err = sent
	}
	return err
}
