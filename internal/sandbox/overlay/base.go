package overlay

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// ErrBase means that a directory may not be the base of an overlay.
var ErrBase = errors.New("cannot be the base of an overlay")

func refuseBase(base, reason, hint string) error {
	return errhint.With(fmt.Errorf("%q %w: %s", base, ErrBase, reason), hint)
}

// checkBase refuses a root, a home and the like as a base, and directories
// that hold what the agent must not see.
func checkBase(r Request) (hostpath.Facts, error) {
	const hint = "Give the directory of one project."
	if !filepath.IsAbs(r.Base) || filepath.Clean(r.Base) != r.Base {
		return hostpath.Facts{}, refuseBase(r.Base, "it is not a clean absolute path", hint)
	}
	var st unix.Stat_t
	if err := unix.Lstat(r.Base, &st); err != nil {
		return hostpath.Facts{}, refuseBase(r.Base, err.Error(), hint)
	}
	facts, err := hostpath.Identify(r.Base)
	switch {
	case err != nil:
		return facts, err
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return facts, refuseBase(r.Base, "it is a symbolic link to "+strconv.Quote(facts.Canonical), "Give the directory itself: "+facts.Canonical)
	case facts.Kind != hostpath.KindDirectory:
		return facts, refuseBase(r.Base, "it is not a directory", hint)
	case facts.Canonical == "/":
		return facts, refuseBase(r.Base, "it is the root directory", hint)
	}
	if home := homeInside(facts.Canonical); home != "" {
		return facts, refuseBase(r.Base, "it is or contains the home directory "+strconv.Quote(home), hint)
	}
	if err := checkState(r, facts.Canonical); err != nil {
		return facts, err
	}
	return facts, checkOthers(r, facts.Canonical)
}

// checkState refuses a base that is inside or around the state directory.
func checkState(r Request, base string) error {
	for _, dir := range []string{r.State, r.Dir} {
		facts, err := hostpath.Identify(dir)
		if err != nil {
			return err
		}
		if within(facts.Canonical, base) || within(base, facts.Canonical) {
			return refuseBase(r.Base, "the state directory "+strconv.Quote(r.State)+" is inside or around it",
				"Move the state directory out of the project, or choose another directory.")
		}
	}
	return nil
}

// checkOthers refuses the base of another owner, and what is inside or around it.
func checkOthers(r Request, base string) error {
	records, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(r.Dir)), "*", "*", recordName))
	if err != nil || r.Owner == "" {
		return err
	}
	for _, record := range records {
		dir := filepath.Dir(record)
		other, err := Load(dir)
		if err != nil || dir == r.Dir || isUnfinished(dir) || other.Owner == "" || other.Owner == r.Owner {
			continue
		}
		if within(other.Base, base) || within(base, other.Base) {
			return refuseBase(r.Base, fmt.Sprintf("agent %q has an overlay of %q", other.Owner, other.Base),
				"Discard that agent's overlay with atoll sync reset, or give this agent a directory of its own.")
		}
	}
	return nil
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// homeInside returns a home directory that is dir or below it, or "".
func homeInside(dir string) string {
	for _, home := range append(hostpath.Homes(os.Getenv), accountHomes()...) {
		if home != "/" && within(home, dir) {
			return home
		}
	}
	return ""
}

// accountHomes returns the home directories of the accounts of people and of root.
func accountHomes() []string {
	homes := []string{"/root"}
	file, err := os.Open("/etc/passwd")
	if err != nil {
		return homes
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 7 || !filepath.IsAbs(fields[5]) {
			continue
		}
		if uid, err := strconv.Atoi(fields[2]); err == nil && uid >= 1000 && uid < 65534 {
			homes = append(homes, filepath.Clean(fields[5]))
		}
	}
	return homes
}
