package clientconfig

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Domain ends the host names that are sandboxes.
const Domain = ".atoll"

// hostAlias is the name that the server's key is known under: all sandboxes have one.
const hostAlias = "atoll"

// ConfigPath returns the path of the configuration.
func (f *Files) ConfigPath() string { return filepath.Join(f.Dir, textFile) }

// ProxyCommand returns the command by which a client reaches a sandbox of a gateway that is
// named: an address, or a context.
func ProxyCommand(program, gateway string) (string, error) {
	if strings.ContainsAny(program+gateway, "'\"\\$%\n ") {
		return "", errhint.With(fmt.Errorf("%q cannot be written into a command of SSH", program+" "+gateway), "name the gateway with `atoll context add`, and keep the program at a path of plain characters")
	}
	return "'" + program + "' ssh --gateway '" + gateway + "' proxy -- '%n'", nil
}

// Text returns the configuration of the client: every host below Domain is the sandbox of
// that name, reached by running the program. The name reaches a shell, so it is quoted,
// and a name that contains the quote matches no host.
func Text(dir, program string) (string, error) {
	for _, path := range []string{dir, program} {
		if strings.ContainsAny(path, "'\"\\$\n") || !filepath.IsAbs(path) {
			return "", errhint.With(fmt.Errorf("%q cannot be written into an SSH configuration", path), "move it to a path of plain characters, or set ATOLL_STATE_DIR to one")
		}
	}
	file := func(name string) string { return `"` + strings.ReplaceAll(filepath.Join(dir, name), "%", "%%") + `"` }
	return `# Written by "atoll ssh config". Each host is a sandbox; nothing listens.
Host *` + Domain + ` "!*'*"
  ProxyCommand '` + strings.ReplaceAll(program, "%", "%%") + `' ssh proxy -- '%n'
  User atoll
  HostKeyAlias ` + hostAlias + `
  UserKnownHostsFile ` + file(knownFile) + `
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  IdentityFile ` + file(clientKey) + `
  IdentitiesOnly yes
  IdentityAgent none
  ForwardAgent no
  ForwardX11 no
  CheckHostIP no
  PasswordAuthentication no
  KbdInteractiveAuthentication no
`, nil
}
