package linux

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Restrict is a setting of the host that keeps users from making user
// namespaces, and with them sandboxes.
type Restrict struct {
	Name  string // of the setting; "" if none was found
	value string // that lifts it
}

// appArmorSetting restricts programs without a profile that says otherwise.
const appArmorSetting = "kernel.apparmor_restrict_unprivileged_userns"

// restrictions are the settings that are known.
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

// Restriction finds the setting that stands in the way of this user.
func Restriction() Restrict { return restrictionIn("/proc/sys", privileged()) }

func restrictionIn(settings string, root bool) Restrict {
	for _, r := range restrictions {
		value, err := os.ReadFile(filepath.Join(settings, strings.ReplaceAll(r.name, ".", "/")))
		if err == nil && r.restricts(strings.TrimSpace(string(value))) && (r.rootToo || !root) {
			return Restrict{r.name, r.lifted}
		}
	}
	return Restrict{}
}

// Hint is what to do about it.
func (r Restrict) Hint() string {
	if r.Name == "" {
		return "the host, or the container this runs in, forbids user namespaces: allow them (seccomp, --privileged), or use sandbox.backend docker"
	}
	return "atoll doctor --fix"
}

// settingsFile keeps a setting over the next start of the machine.
const settingsFile = "/etc/sysctl.d/60-atoll.conf"

// Fix is what root does about it, as a script for the shell: with AppArmor, a
// profile for this program alone, and else the setting, now and for later.
func (r Restrict) Fix(program string) string {
	if r.Name == "" {
		return ""
	}
	if r.Name == appArmorSetting {
		profile := fmt.Sprintf("abi <abi/4.0>,\ninclude <tunables/global>\nprofile atoll %q flags=(unconfined) {\n  userns,\n}\n", program)
		return fmt.Sprintf("printf %%s %s >/etc/apparmor.d/atoll && apparmor_parser -r /etc/apparmor.d/atoll", quoted(profile))
	}
	setting := r.Name + "=" + r.value
	return fmt.Sprintf("echo %s >%s && sysctl -w %s", setting, settingsFile, setting)
}

// quoted is a word for the shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
