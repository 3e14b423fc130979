package lima

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/vm/profile"
)

// mountsScript lists mounts, and the names in each directory, inside.
const mountsScript = `findmnt --json --list -o TARGET,OPTIONS`

// CheckMounts compares what is mounted inside with what was declared, one by one: where
// it is, whether it can be written, and whether it is the directory that was meant. Lima
// has mounted others after a change.
func (v *VM) CheckMounts(ctx context.Context, want []profile.Mount) error {
	out, err := v.Run(ctx, mountsScript, nil)
	if err != nil {
		return err
	}
	var found struct {
		Filesystems []struct {
			Target  string `json:"target"`
			Options string `json:"options"`
		} `json:"filesystems"`
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return fmt.Errorf("findmnt: %w", err)
	}
	writable := map[string]bool{}
	for _, f := range found.Filesystems {
		writable[f.Target] = slices.Contains(strings.Split(f.Options, ","), "rw")
	}
	var wrong []error
	for _, m := range want {
		is, there := writable[m.Point]
		switch {
		case !there:
			wrong = append(wrong, fmt.Errorf("%s is not mounted inside", m.Point))
		case is != m.Writable:
			wrong = append(wrong, fmt.Errorf("%s is %s inside and %s in the profile", m.Point, access(is), access(m.Writable)))
		default:
			wrong = append(wrong, v.isSame(ctx, m))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return errhint.With(err, "mounts are fixed when a virtual machine is made: decide about what waits (`atoll sync status`), then `atoll vm delete` and `atoll vm up`")
	}
	return nil
}

func access(writable bool) string {
	if writable {
		return "writable"
	}
	return "read-only"
}

// rounds is how often the names in a directory are compared: it may change meanwhile.
const rounds = 3

// isSame compares the directories until they are the same, a few times.
func (v *VM) isSame(ctx context.Context, m profile.Mount) (err error) {
	for range rounds {
		if err = v.sameDirectory(ctx, m); err == nil {
			return nil
		}
	}
	return err
}

// sameDirectory compares the names in a directory inside with those of its source.
func (v *VM) sameDirectory(ctx context.Context, m profile.Mount) error {
	entries, err := os.ReadDir(m.Source)
	if err != nil {
		return err
	}
	var here []string
	for _, e := range entries {
		here = append(here, e.Name())
	}
	out, err := v.Run(ctx, `find `+m.Point+` -mindepth 1 -maxdepth 1 -printf '%f\0'`, nil)
	if err != nil {
		return err
	}
	inside := strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
	slices.Sort(here)
	slices.Sort(inside)
	if !slices.Equal(here, inside) {
		return fmt.Errorf("%s does not have the files of %s inside", m.Point, m.Source)
	}
	return nil
}
