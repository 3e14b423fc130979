package service

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
)

// ReadSecret reads a secret of the configuration: as it is written there, or from
// the variable that it names. Name is the setting, for the error.
func ReadSecret(s *provide.Settings, name string, t *config.Secret) (secret.Value, error) {
	switch {
	case t == nil:
		return secret.Value{}, nil
	case t.Ref == nil:
		return secret.New(t.Reveal()), nil
	case t.Ref.Source == "env":
		return secret.New(s.Getenv(t.Ref.ID)), nil
	}
	return secret.Value{}, errhint.With(fmt.Errorf("%s: what is in %q cannot be read here", name, t.Ref.Source), "keep it in the variable ATOLL_GATEWAY_TOKEN, or make one with `atoll token create`")
}
