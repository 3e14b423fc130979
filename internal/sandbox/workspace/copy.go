package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/hostpath/projectquota"
)

// view is a copy, its manifest and its source, open for work or comparison.
type view struct {
	root     *lockedRoot
	agent    *os.File // nil: there is no agent workspace
	copy     *os.File
	manifest *manifest
}

func (w *view) close() {
	closeAll(w.agent, w.copy)
	w.root.close()
}

// makeView opens all directories of a sandbox that has a copy, making what is
// missing, and holds the copy alone.
func makeView(ctx context.Context, l Layout, opts Options, report *Report) (made *view, err error) {
	v, err := openLockedRoot(ctx, l)
	if err != nil {
		return nil, err
	}
	w := &view{root: v}
	defer func() {
		if made == nil {
			w.close()
		}
	}()
	user, err := wantedUser(l, opts)
	if err != nil {
		return nil, err
	}
	if w.agent, err = makeAgentDir(l, user, report); err != nil {
		return nil, err
	}
	if w.manifest, err = v.loadManifest(); err != nil {
		return nil, err
	}
	if err = v.markTemporary(); err != nil {
		return nil, err
	}
	if w.copy, err = v.makeCopy(user, report); err != nil {
		return nil, err
	}
	if report.CopyCreated {
		err = limitCopy(w.copy, opts.Quota)
	}
	if err != nil {
		return nil, copyError(l, err)
	}
	return w, nil
}

// limitCopy sets a project quota for a new copy where the file system has them. The
// guest measures the copy everywhere.
func limitCopy(dir *os.File, quota projectquota.Limits) error {
	if quota == (projectquota.Limits{}) || os.Geteuid() != 0 {
		return nil
	}
	if err := projectquota.Apply(dir, quota); !errors.Is(err, projectquota.ErrUnsupported) {
		return err
	}
	return nil
}

// openView opens the same for reading; nil if there is no copy.
func openView(l Layout) (*view, error) {
	w, err := openCopyView(l)
	if w == nil || err != nil {
		return nil, err
	}
	if w.agent, err = openAgentDir(l); ignoreMissing(err) != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// openCopyView is openView without the agent workspace.
func openCopyView(l Layout) (opened *view, err error) {
	if !l.HasCopy() {
		return nil, nil
	}
	v, err := openRootForReading(l)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	w := &view{root: v}
	defer func() {
		if opened == nil {
			w.close()
		}
	}()
	if w.copy, err = v.openCopy(); err != nil {
		return nil, ignoreMissing(err)
	}
	if w.manifest, err = v.loadManifest(); err != nil {
		return nil, err
	}
	return w, nil
}

// makeCopy opens the copy, making it for the user that the sandbox runs as.
func (v *lockedRoot) makeCopy(user hostpath.Owner, report *Report) (*os.File, error) {
	as := newDir{owner: grantable(user), mode: privateDirMode}
	if as.owner == nil && user.UID != os.Geteuid() {
		as.mode = sharedDirMode // we cannot give it away, so at least let them in
	}
	dir, made, err := makeDir(v.root, v.layout.Slug, as)
	if err != nil {
		return nil, copyError(v.layout, err)
	}
	report.CopyCreated = made
	if err := v.checkCopy(dir, user, report); err != nil {
		closeAll(dir)
		return nil, err
	}
	return dir, nil
}

// checkCopy refuses a copy that this process cannot write to, and changes the owner
// of one that does not belong to the sandbox's user, or warns of it.
func (v *lockedRoot) checkCopy(dir *os.File, user hostpath.Owner, report *Report) error {
	var st unix.Stat_t
	err := errors.Join(
		unix.Fstat(int(dir.Fd()), &st),
		unix.Faccessat(int(dir.Fd()), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS),
	)
	if err != nil {
		return copyError(v.layout, err)
	}
	if int(st.Uid) == user.UID {
		return nil
	}
	warning := Warning{
		Subject: "sandbox workspace " + v.layout.SandboxDir,
		Message: fmt.Sprintf("belongs to uid %d, but the sandbox runs as uid %d and may not be able to write there", st.Uid, user.UID),
		Hint:    "Leave docker.user unset, or run Atoll as root.",
	}
	if os.Geteuid() == 0 {
		err = dir.Chown(user.UID, user.GID)
		warning.Message = fmt.Sprintf("belonged to uid %d and now to uid %d, which the sandbox runs as; files made earlier keep their owner", st.Uid, user.UID)
		warning.Hint = "A fresh copy: atoll sandbox recreate --discard"
	}
	report.Warnings.add(warning)
	return copyError(v.layout, err)
}

// removeHalfWritten removes files that a crash left half-written, and tells whether the copy
// is empty. It looks at the first names only: an agent may have made millions.
func removeHalfWritten(dir *os.File) (bool, error) {
	// A descriptor of its own: reading moves the place where the next one begins.
	again, err := openDirAt(dir, ".")
	if err != nil {
		return false, err
	}
	defer closeAll(again)
	names, err := nextNames(again)
	if err != nil {
		return false, err
	}
	left := 0
	for _, name := range names {
		if !strings.HasPrefix(name, hostpath.TempPrefix) {
			left++
		} else if err := unlinkAt(dir, name); err != nil && !isDirectory(err) {
			return false, err
		}
	}
	return left == 0, nil
}
