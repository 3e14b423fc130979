package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// ErrTorn means that the host went down while the overlay was mounted without
// syncing, so that changes may be incomplete.
var ErrTorn = errors.New("the host went down while this overlay was mounted; its changes may be incomplete")

// BeforeMount makes the kernel overlay at dir ready to be mounted. It is called
// when nothing is mounted from it, just before that. ErrTorn if a person has to
// decide first.
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
	return t.removeVolatileMark()
}

// noticeBoot notes this boot. A volatile mount of an earlier boot that did not
// end in Reconcile left changes that may be torn.
func (t *Tree) noticeBoot() error {
	boot := bootID()
	if t.Boot == boot {
		return nil
	}
	if t.Kind == Kernel {
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
