package rootfs

import "strings"

// ImportHint names the command that brings an image to where no engine is needed.
// Images of Atoll's own recipes are in no registry.
func ImportHint(ref string) string {
	switch repository, _, _ := strings.Cut(ref, ":"); repository {
	case "openclaw-sandbox":
		return "`atoll images import --from-host " + ref + "`, which takes this machine's packages, or `atoll images build sandbox --backend linux`"
	case "openclaw-sandbox-common":
		return built("common")
	case "cogni-sandbox-openclaw":
		return built("openclaw")
	case "openclaw-sandbox-browser":
		return built("browser")
	case "code-interpreter":
		return built(repository)
	case "claude", "codex", "gemini", "opencode":
		return "`atoll images build " + repository + "`"
	}
	return "`atoll images pull " + ref + "`, or `atoll images import FILE " + ref + "`"
}

// built is the hint for an image of a recipe.
func built(recipe string) string { return "`atoll images build " + recipe + " --backend linux`" }
