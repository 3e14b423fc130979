package policy

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/config"
)

// UlimitFlag is a ulimit in the form of the docker command line. A single value
// is given once.
func UlimitFlag(name string, u config.Ulimit) (string, error) {
	soft, hard, err := u.Values()
	if err != nil {
		return "", fmt.Errorf("ulimit %s: %w", name, err)
	}
	if soft == hard {
		return fmt.Sprintf("%s=%d", name, soft), nil
	}
	return fmt.Sprintf("%s=%d:%d", name, soft, hard), nil
}
