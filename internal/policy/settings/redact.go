package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/policy"
)

const redacted = "[redacted]"

// withPassword is a URL that carries one.
var withPassword = lazyregexp.New(`://[^/@\s]*:[^/@\s]+@`)

// WithoutSecrets is an agent's sandbox as it may be shown: values of variables
// that are, or may be, secrets are hidden.
func WithoutSecrets(cfg *config.Config, agent *config.Agent) config.Sandbox {
	box := agent.Sandbox
	env := policy.SanitizeEnv(policy.EnvRequest{Configured: box.Docker.Env, AllowSecret: box.AllowSecretEnv})
	box.Docker.Env = maps.Clone(box.Docker.Env)
	for name, value := range box.Docker.Env {
		_, passed := env.Passed[name]
		suspicious := slices.ContainsFunc(env.Warnings, func(w string) bool { return strings.HasPrefix(w, name+":") })
		origin := agent.Origins["sandbox.docker.env."+name]
		if !passed || suspicious || withPassword.MatchString(value) || cfg.FromVariable(origin.Path) {
			box.Docker.Env[name] = redacted
		}
	}
	return box
}
