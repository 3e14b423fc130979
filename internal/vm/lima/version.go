package lima

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Version is a version of Lima.
type Version struct{ Major, Minor, Patch int }

// The versions that files are written for.
var (
	Oldest = Version{1, 0, 0}
	next   = Version{3, 0, 0}
)

// ParseVersion reads what `limactl --version` prints.
func ParseVersion(text string) (Version, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return Version{}, fmt.Errorf("limactl --version said nothing")
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(fields[len(fields)-1], "v"), "-")
	var v Version
	parts := strings.SplitN(number, ".", 3)
	for i, to := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if i >= len(parts) {
			break
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return Version{}, fmt.Errorf("limactl --version said %.80q, which is no version", text)
		}
		*to = n
	}
	return v, nil
}

// String returns MAJOR.MINOR.PATCH.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Check refuses versions that no file is written for.
func (v Version) Check() error {
	switch {
	case v.Major < Oldest.Major:
		return errhint.With(fmt.Errorf("limactl %s is too old: %s is the least", v, Oldest), "run `brew upgrade lima`")
	case v.Major >= next.Major:
		return errhint.With(fmt.Errorf("limactl %s is not known: files are written for versions before %s", v, next), "run `brew install lima@2`, or a newer atoll")
	}
	return nil
}
