package steps

import (
	"cmp"
	"fmt"

	"github.com/atoll-run/atoll/deploy/vm/keys"
)

// The packages of Node.js, which the distribution has in versions that are too old for
// OpenClaw only.
const (
	nodeMajor   = 24
	nodeKeyFile = "/etc/apt/keyrings/nodesource.asc"
	nodeSources = `# Written by atoll vm.
Types: deb
URIs: https://deb.nodesource.com/node_%d.x
Suites: nodistro
Components: main
Signed-By: %s
`
)

// nodeJS is Node.js of NodeSource, whose packages must have the signature of its key.
func (s *Setup) nodeJS() []Action {
	key := []byte(cmp.Or(string(s.NodeKey), string(keys.NodeSource)))
	install := packages("nodejs")
	install.Check = fmt.Sprintf(`[ "$(node -p 'parseInt(process.versions.node) >= %d')" = true ] && command -v npm`, nodeMajor)
	return []Action{
		packages("ca-certificates"), file(nodeKeyFile, "0644", key),
		file("/etc/apt/sources.list.d/nodesource.sources", "0644", fmt.Appendf(nil, nodeSources, nodeMajor, nodeKeyFile)), install,
	}
}

// openClaw is OpenClaw of npm's registry, which says its version when it works.
func openClaw() Action {
	return Action{
		Check: "openclaw --version",
		Apply: "npm install --global --no-audit --no-fund --no-progress openclaw",
	}
}
