package hostpath

import (
	"os/user"
	"path/filepath"
	"slices"
)

// homeVariables name the environment variables that may point at a home directory.
var homeVariables = []string{"OPENCLAW_HOME", "HOME", "USERPROFILE"}

// Homes returns the home directories of the user who runs Atoll, each as written
// and in canonical form: the directories whose credential directories are never mounted.
func Homes(getenv func(string) string) []string {
	var candidates []string
	for _, name := range homeVariables {
		candidates = append(candidates, getenv(name))
	}
	if u, err := user.Current(); err == nil {
		candidates = append(candidates, u.HomeDir)
	}
	var homes []string
	for _, home := range candidates {
		if filepath.IsAbs(home) {
			homes = append(homes, filepath.Clean(home))
			if facts, err := Identify(home); err == nil {
				homes = append(homes, facts.Canonical)
			}
		}
	}
	slices.Sort(homes)
	return slices.Compact(homes)
}
