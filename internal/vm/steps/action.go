package steps

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Action is one thing that must be so inside. The scripts are run by sh -eu as root.
type Action struct {
	Check string // succeeds if it is so
	Apply string
	Stdin []byte // of Apply; it may be secret, so it is never in a script or a message
}

// file is a file with its content, owner and mode.
func file(path, mode string, content []byte) Action {
	return ownedFile(path, "root:root", mode, content)
}

func ownedFile(path, owner, mode string, content []byte) Action {
	sum := sha256.Sum256(content)
	user, group, _ := strings.Cut(owner, ":")
	path = word(path)
	return Action{
		Check: fmt.Sprintf("[ \"$(stat -c '%%U:%%G %%a' %[1]s)\" = '%[2]s %[3]s' ] && [ \"$(sha256sum <%[1]s)\" = '%[4]s  -' ]", path, owner, strings.TrimLeft(mode, "0"), hex.EncodeToString(sum[:])),
		// Written under another name and renamed: no reader sees half of it, and a program that
		// runs can be replaced.
		Apply: fmt.Sprintf("install -D -o %s -g %s -m %s /dev/stdin %[4]s.new && mv -f %[4]s.new %[4]s", user, group, mode, path),
		Stdin: content,
	}
}

// directory is a directory with its owner and mode.
func directory(path, owner, mode string) Action {
	user, group, _ := strings.Cut(owner, ":")
	return Action{
		Check: fmt.Sprintf("[ -d %[1]s ] && [ \"$(stat -c '%%U:%%G %%a' %[1]s)\" = '%[2]s %[3]s' ]", path, owner, strings.TrimLeft(mode, "0")),
		Apply: fmt.Sprintf("install -d -o %s -g %s -m %s %s", user, group, mode, path),
	}
}

// packages are packages of the distribution.
func packages(names ...string) Action {
	list := strings.Join(names, " ")
	return Action{
		Check: fmt.Sprintf("[ \"$(dpkg-query -W -f '${db:Status-Status}\\n' %s 2>/dev/null | grep -cx installed)\" = %d ]", list, len(names)),
		Apply: "export DEBIAN_FRONTEND=noninteractive; apt-get -q -o DPkg::Lock::Timeout=300 update && apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends " + list,
	}
}

// word returns a word for the shell: in quotes if it has a backslash, as names of units do.
func word(s string) string {
	if strings.Contains(s, `\`) {
		return "'" + s + "'"
	}
	return s
}

// service is a unit that is enabled and runs.
func service(unit string) Action {
	unit = word(unit)
	return Action{
		Check: fmt.Sprintf("systemctl is-enabled --quiet %[1]s && systemctl is-active --quiet %[1]s", unit),
		Apply: fmt.Sprintf("systemctl daemon-reload && systemctl enable %[1]s && systemctl restart %[1]s", unit),
	}
}

// systemUser is a user without a password, with a home directory.
func systemUser(name, home string) Action {
	return Action{
		Check: "id -u " + name,
		Apply: fmt.Sprintf("useradd --system --user-group --home-dir %s --create-home --shell /usr/sbin/nologin %s", home, name),
	}
}
