package config

import "strings"

// IsSilent reports whether the file says nothing about where and how the default agent
// works: it lists no agent but those of directories and of the API, and has neither a workspace nor
// sandbox settings. What concerns overlays and their gate, and what may leave, does not
// count: it holds in the sandbox of a directory too.
func (c *Config) IsSilent() bool {
	for _, a := range c.agents {
		if a.id != DirectoryAgent && a.id != APIAgent {
			return false
		}
	}
	agent, err := c.Resolve(DirectoryAgent)
	if err != nil {
		return false
	}
	for key, origin := range agent.Origins {
		if origin.Source == fromGlobal && placesAgent(key) {
			return false
		}
	}
	return true
}

// placesAgent reports whether a setting says where or how an agent works.
func placesAgent(key string) bool {
	for _, other := range []string{"sandbox.overlay", "sandbox.sync", "sandbox.egress"} {
		if strings.HasPrefix(key, other) {
			return false
		}
	}
	return key == "workspace" || strings.HasPrefix(key, "sandbox.")
}
