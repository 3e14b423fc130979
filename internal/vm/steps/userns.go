package steps

import (
	"fmt"

	"github.com/atoll-run/atoll/deploy/apparmor"
)

// restricted is the setting by which Ubuntu bars user namespaces.
const restricted = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

// userNamespaces lets the program make sandboxes where Ubuntu bars user namespaces: by
// the profile of `atoll doctor --fix`, for this program alone.
func userNamespaces() Action {
	a := file(apparmor.Path, "0644", []byte(apparmor.Profile(ProgramFile)))
	a.Check = fmt.Sprintf("[ \"$(cat %s 2>/dev/null || echo 0)\" = 0 ] || { %s && grep -q '^atoll ' /sys/kernel/security/apparmor/profiles; }", restricted, a.Check)
	a.Apply += " && apparmor_parser -r " + apparmor.Path
	return a
}
