package provide

import (
	"os"
	"path/filepath"
)

// egressDir is the directory of the state directory that has a directory for each
// sandbox with egress.
const egressDir = "egress"

// EgressDir is the directory of a sandbox's CA and of its placeholders of secrets. They
// are made anew with the sandbox.
func (a *Installation) EgressDir(name string) string {
	return filepath.Join(a.Paths.AtollState, egressDir, name)
}

func (a *Installation) removeEgress(name string) error { return os.RemoveAll(a.EgressDir(name)) }
