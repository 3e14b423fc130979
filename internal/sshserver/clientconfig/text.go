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
