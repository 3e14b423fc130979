package rootfs

import "strings"

// ImportHint names the command that brings an image to where no engine is needed.
// Images of Atoll's own recipes are in no registry.
func ImportHint(ref string) string {
	switch repository, _, _ := strings.Cut(ref, ":"); repository {
	case "openclaw-sandbox":
		return "`atoll images import --from-host " + ref + "`, which takes this machine's packages"
	case "openclaw-sandbox-common":
		return built("common", ref)
	case "cogni-sandbox-openclaw":
		return built("openclaw", ref)
	}
	return "`atoll images pull " + ref + "`, or `atoll images import FILE " + ref + "`"
}

// built is the hint for an image that an engine builds.
func built(recipe, ref string) string {
	return "`atoll images build " + recipe + "` on a machine with an engine, then `atoll images import --from-docker " + ref + "`"
}
