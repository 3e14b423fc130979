package linux

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/deploy/apparmor"
)

// UsernsRestriction is a setting of the host that keeps users from making user
// namespaces, and with them sandboxes.
type UsernsRestriction struct {
	Name  string // of the setting; "" if none was found
	value string // that lifts it
}

// appArmorSetting restricts programs without a profile that says otherwise.
const appArmorSetting = "kernel.apparmor_restrict_unprivileged_userns"

// restrictions are the known settings.
var restrictions = []struct {
	name      string
	restricts func(value string) bool
	lifted    string
	rootToo   bool
}{
	{"user.max_user_namespaces", func(v string) bool { return v == "0" }, "15000", true},
	{"kernel.unprivileged_userns_clone", func(v string) bool { return v == "0" }, "1", false},
	{appArmorSetting, func(v string) bool { return v != "0" }, "0", false},
}

// FindUsernsRestriction finds the setting that stands in the way of this user.
func FindUsernsRestriction() UsernsRestriction { return restrictionIn("/proc/sys", privileged()) }

func restrictionIn(settings string, root bool) UsernsRestriction {
	for _, r := range restrictions {
		value, err := os.ReadFile(filepath.Join(settings, strings.ReplaceAll(r.name, ".", "/")))
		if err == nil && r.restricts(strings.TrimSpace(string(value))) && (r.rootToo || !root) {
			return UsernsRestriction{r.name, r.lifted}
		}
	}
	return UsernsRestriction{}
}

// Hint returns the command that lifts the restriction, or what to do where none
// is known.
func (r UsernsRestriction) Hint() string {
	if r.Name == "" {
		return "the host, or the container this runs in, forbids user namespaces: allow them (seccomp, --privileged), or use sandbox.backend docker"
	}
	return "atoll doctor --fix"
}

// settingsFile keeps a setting across reboots.
const settingsFile = "/etc/sysctl.d/60-atoll.conf"

// Fix returns a shell script for root that lifts the restriction: with AppArmor, a
// profile for this program alone, otherwise the setting, now and after a reboot.
func (r UsernsRestriction) Fix(program string) string {
	if r.Name == "" {
		return ""
	}
	if r.Name == appArmorSetting {
		return fmt.Sprintf("printf %%s %s >%s && apparmor_parser -r %[2]s", quoted(apparmor.Profile(program)), apparmor.Path)
	}
	setting := r.Name + "=" + r.value
	return fmt.Sprintf("echo %s >%s && sysctl -w %s", setting, settingsFile, setting)
}

// quoted returns a word in the shell's quotes.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
