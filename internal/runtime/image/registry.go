package image

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// npmRegistry is where npm takes packages from on this machine: what its
// variables say, else what npm itself answers, which reads its files.
func npmRegistry(ctx context.Context, getenv func(string) string) (string, error) {
	const hint = "install npm, or set NPM_CONFIG_REGISTRY to the address of a registry"
	registry := cmp.Or(getenv("NPM_CONFIG_REGISTRY"), getenv("npm_config_registry"))
	if registry == "" {
		answer, err := exec.CommandContext(ctx, "npm", "config", "get", "registry").Output()
		if err != nil {
			return "", errhint.With(errors.New("it is not known where npm takes packages from: "+err.Error()), hint)
		}
		registry = strings.TrimSpace(string(answer))
	}
	if err := checkRegistry(registry); err != nil {
		return "", errhint.With(errors.New("npm's registry: "+err.Error()), hint)
	}
	return registry, nil
}
