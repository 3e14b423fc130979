package linux

import (
	"fmt"
	"os"
)

// InScope is the command that runs another one in a control group of the user's
// own. Systemd gives every user one: what it starts for the user is below it, a
// login by SSH or on a console is not.
const InScope = "systemd-run --user --scope -q"

// systemdRuns exists while systemd is the machine's first process.
const systemdRuns = "/run/systemd/system"

// userManager exists while systemd runs services for a user.
func userManager(uid int) string { return fmt.Sprintf("/run/user/%d/systemd/private", uid) }

// delegateRemedy says how this user comes to have a control group.
func delegateRemedy() string {
	return groupRemedy(os.Getuid(), func(path string) bool { _, err := os.Stat(path); return err == nil })
}

func groupRemedy(uid int, exists func(string) bool) string {
	switch {
	case !exists(systemdRuns):
		return "no systemd runs here that could give you a control group: run as root, or remove the limit"
	case !exists(userManager(uid)):
		return fmt.Sprintf("systemd runs no services for this user: log in instead of using su or sudo, or run `sudo loginctl enable-linger %d`; then put `%s` in front of the command; or remove the limit", uid, InScope)
	}
	return "put `" + InScope + "` in front of the command: then it runs in a control group of yours; or remove the limit"
}
