package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// ErrTorn means that the host went down while the overlay was mounted without
// syncing, so that changes may be incomplete.
var ErrTorn = errors.New("the host went down while this overlay was mounted; its changes may be incomplete")

// BeforeMount makes the kernel overlay at dir ready to be mounted: it reconciles
// it, and removes what the kernel left of the last mount. It is called when nothing
// is mounted from it, just before that. ErrTorn if a person has to decide first.
func BeforeMount(dir string) error {
	t, err := Load(dir)
	if err != nil {
		return err
	}
	if err := t.noticeBoot(); err != nil {
		return err
	}
	if t.Torn {
		return errhint.With(fmt.Errorf("overlay of %q: %w", t.Base, ErrTorn),
			"Look at the changes with atoll sync status, then keep them with atoll sync accept-torn or discard them with atoll sync reset.")
	}
	if err := t.Reconcile(context.Background()); err != nil && !errors.Is(err, errTooMany) {
		return err
	}
	if t.Settled {
		t.Settled = false
		if err := t.save(); err != nil {
			return err
		}
	}
	return t.removeVolatileMark()
}

// AfterStop brings the changes of the overlay at dir to disk when its sandbox has
// ended. From then on, until the next mount, no crash of the host tears them.
func AfterStop(dir string) error {
	t, err := Load(dir)
	if err != nil || t.Kind != Kernel || !t.Volatile || t.Torn || t.Settled || t.Boot != bootID() {
		return err
	}
	upper, err := hostpath.OpenDir(t.Upper())
	if err != nil {
		return err
	}
	defer upper.Close()
	if err := syncTree(upper); err != nil {
		return fmt.Errorf("sync the changes above %q: %w", t.Base, err)
	}
	t.Settled = true
	return t.save()
}

// noticeBoot notes this boot. A volatile mount of an earlier boot that did not
// end in AfterStop left changes that may be torn.
func (t *Tree) noticeBoot() error {
	boot := bootID()
	if t.Boot == boot {
		return nil
	}
	if t.Kind == Kernel && !t.Settled {
		left, err := t.volatileMark()
		if err != nil {
			return err
		}
		t.Torn = t.Torn || left
	}
	t.Boot = boot
	return t.save()
}

// AcceptTorn takes the changes of a torn overlay as they are.
func (t *Tree) AcceptTorn() error {
	if err := t.removeVolatileMark(); err != nil {
		return err
	}
	t.Torn, t.Boot = false, bootID()
	return t.save()
}

// volatileMark reports whether the kernel marked the upper as not synced.
// Nothing may be mounted: the directories are made with no permissions, and get
// some.
func (t *Tree) volatileMark() (bool, error) {
	for _, dir := range []string{"work", "work/incompat"} {
		err := os.Chmod(filepath.Join(t.Work(), dir), 0o700)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	_, err := os.Lstat(filepath.Join(t.Work(), "work", "incompat", "volatile"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (t *Tree) removeVolatileMark() error {
	if t.Kind != Kernel {
		return nil
	}
	if marked, err := t.volatileMark(); err != nil || !marked {
		return err
	}
	return removeTree(filepath.Join(t.Work(), "work", "incompat"))
}

// bootID names the boot of this kernel.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
