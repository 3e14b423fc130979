package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// Reseed makes the seed files of a copy what they are in the agent workspace
// now. A file that the agent changed is moved aside, never lost; the report
// says where to. Everything else in the copy stays, MEMORY.md too. With discard
// the whole copy is wiped first. The agent workspace itself is never changed:
// under rw there is no copy and nothing happens.
func Reseed(ctx context.Context, l Layout, opts Options, discard bool) (Report, error) {
	switch {
	case !l.HasCopy():
		return Report{}, nil
	case discard:
		return discardAndPrepare(ctx, l, opts)
	}
	var report Report
	if err := checkRealOverlap(l); err != nil {
		return report, err
	}
	w, err := makeView(ctx, l, opts, &report)
	if err != nil {
		return report, err
	}
	defer w.close()
	return report, w.reseed(&report)
}

func discardAndPrepare(ctx context.Context, l Layout, opts Options) (Report, error) {
	if err := Remove(ctx, l); err != nil {
		return Report{}, err
	}
	report, err := Prepare(ctx, l, opts)
	report.Discarded = true
	return report, err
}

// reseed first forgets the seeds that it will replace by copying anew: if we
// are killed halfway, the next Prepare sees files that were never seeded and
// goes on.
func (w *view) reseed(report *Report) error {
	s, err := w.newSeeder(report)
	if err != nil {
		return err
	}
	states, err := w.states()
	if err != nil {
		return err
	}
	for name, state := range states {
		if state.modified() || state.deleted() {
			delete(w.manifest.Files, name)
		}
	}
	if err := w.root.saveManifest(w.manifest); err != nil {
		return err
	}
	if err := w.moveAside(states, report); err != nil {
		return err
	}
	for _, name := range seedNames() {
		if err = s.refresh(name, states[name]); err != nil {
			break
		}
	}
	return errors.Join(err, w.root.saveManifest(w.manifest))
}

func (w *view) states() (map[string]seedState, error) {
	states := map[string]seedState{}
	for _, name := range seedNames() {
		state, err := w.state(name)
		if err != nil {
			return nil, err
		}
		states[name] = state
	}
	return states, nil
}

// refresh brings one seed file up to date, once changed ones are out of the way.
func (s *seeder) refresh(name string, state seedState) error {
	switch {
	case state.modified() || !state.copy.present:
		return s.copySeed(name, false)
	case state.source.plain() && state.source.sum == state.copy.sum:
		s.report.Kept = append(s.report.Kept, name)
		return nil
	case state.source.present:
		return s.copySeed(name, true)
	}
	delete(s.manifest.Files, name)
	s.report.Removed = append(s.report.Removed, name)
	if err := unlinkAt(s.copy, name); err != nil {
		return copyError(s.layout, fmt.Errorf("%s: %w", name, err))
	}
	return nil
}

// moveAside takes the files that the agent changed out of the copy.
func (w *view) moveAside(states map[string]seedState, report *Report) error {
	var aside *os.File
	defer func() { closeAll(aside) }()
	for _, name := range seedNames() {
		if !states[name].modified() {
			continue
		}
		if aside == nil {
			var err error
			if aside, report.Aside, err = w.root.makeAside(); err != nil {
				return err
			}
		}
		if err := moveAt(w.copy, name, aside, name); ignoreMissing(err) != nil {
			return copyError(w.root.layout, fmt.Errorf("move %s aside to %s: %w", name, report.Aside, err))
		}
		report.Moved = append(report.Moved, name)
	}
	return nil
}

// makeAside makes a directory for files that are moved away, and returns its path.
func (v *lockedRoot) makeAside() (*os.File, string, error) {
	all, err := v.openPart(asideName)
	if err != nil {
		return nil, "", err
	}
	defer closeAll(all)
	name := fmt.Sprintf("%s-%s-%.6s", v.layout.Slug, time.Now().UTC().Format("20060102T150405Z"), rand.Text())
	dir, _, err := makeDir(all, name, newDir{mode: privateDirMode})
	if err != nil {
		return nil, "", rootError(v.layout, err)
	}
	return dir, filepath.Join(v.layout.Root, privateName, asideName, name), nil
}

// Remove wipes a sandbox's copy and what is recorded of it. It is gone at once,
// by one rename, even if removing what was in it takes longer or is interrupted:
// Sweep finishes that. Under rw there is no copy and nothing happens.
func Remove(ctx context.Context, l Layout) error {
	if !l.HasCopy() {
		return nil
	}
	v, err := openLockedRoot(ctx, l)
	if err != nil {
		return err
	}
	defer v.close()
	trash, err := v.openPart(trashName)
	if err != nil {
		return err
	}
	defer closeAll(trash)
	name := l.Slug + "-" + rand.Text()
	if err := moveAt(v.root, l.Slug, trash, name); ignoreMissing(err) != nil {
		return wipeError(l, err)
	}
	if err := v.forget(); err != nil {
		return rootError(l, err)
	}
	if err := removeTree(ctx, trash, name); err != nil {
		return copyError(l, err)
	}
	return nil
}

func wipeError(l Layout, err error) error {
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EXDEV) {
		err := fmt.Errorf("sandbox workspace %s: %w", l.SandboxDir, errMountPoint)
		return errhint.With(err, "Unmount it first; Atoll does not delete what is mounted there.")
	}
	return copyError(l, err)
}

// Sweep removes what earlier removals below a workspaceRoot did not finish.
func Sweep(ctx context.Context, root string) error {
	l := Layout{Params: Params{Root: root}}
	v, err := openRootForReading(l)
	if err != nil {
		return ignoreMissing(err)
	}
	defer v.close()
	if v.private == nil {
		return nil
	}
	if err := errors.Join(v.sweepForks(ctx), v.sweepWrites()); err != nil {
		return err
	}
	trash, err := openDirAt(v.private, trashName)
	if err != nil {
		return ignoreMissing(err)
	}
	defer closeAll(trash)
	return sweepTrash(ctx, trash)
}

// writePatience is far longer than the writing of a record takes.
const writePatience = 10 * time.Minute

// sweepWrites removes half-written records that a crash left: those older than
// writePatience.
func (v *lockedRoot) sweepWrites() error {
	records, err := openDirAt(v.private, manifestsName)
	if err != nil {
		return ignoreMissing(err)
	}
	defer closeAll(records)
	names, err := records.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		var st unix.Stat_t
		if !strings.HasPrefix(name, hostpath.TempPrefix) || unix.Fstatat(int(records.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		if time.Since(time.Unix(st.Mtim.Unix())) < writePatience {
			continue
		}
		if err := unlinkAt(records, name); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("half-written records: %w", err)
		}
	}
	return nil
}

// sweepTrash names the entries first, for removing one makes others.
func sweepTrash(ctx context.Context, trash *os.File) error {
	for {
		again, err := openDirAt(trash, ".")
		if err != nil {
			return err
		}
		names, err := nextNames(again)
		closeAll(again)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := removeTree(ctx, trash, name); err != nil {
				return fmt.Errorf("trash of removed sandboxes: %w", err)
			}
		}
	}
}
