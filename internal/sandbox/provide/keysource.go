package provide

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/secret"
)

// KeySource is where the configuration says that a key comes from.
func (s *Settings) KeySource(k config.LLMKey) (secret.Source, error) {
	switch {
	case k.Literal != nil:
		return secret.Literal{Value: secret.New(k.Literal.Reveal())}, nil
	case k.Env != "":
		return secret.Env{Variable: k.Env, Getenv: s.Getenv}, nil
	case k.File != "":
		return secret.File{Path: k.File}, nil
	case len(k.Command) > 0:
		return s.whileTrusted(secret.Command{Argv: k.Command}), nil
	case k.Age != "":
		return secret.Age{Path: k.Age, Identity: k.Identity}, nil
	}
	return nil, errors.New("the configuration names no source of a key")
}

// whileTrusted guards a program that a trusted project's file names: it runs only
// while the file and the program are as they were trusted.
func (s *Settings) whileTrusted(source secret.Source) secret.Source {
	if s.Project == nil || s.Project.Check == nil {
		return source
	}
	return guarded{source, s.Project.Check}
}

// guarded is a source that is asked only if a check passes.
type guarded struct {
	secret.Source
	check func() error
}

func (g guarded) Read(ctx context.Context) (secret.Value, error) {
	if err := g.check(); err != nil {
		return secret.Value{}, err
	}
	return g.Source.Read(ctx)
}

// SecretSources returns where the value of a secret is looked for, in order.
func (s *Settings) SecretSources(n *config.NamedSecret) (sources []secret.Source, err error) {
	for _, from := range n.From {
		if from.Keyring != "" {
			sources = append(sources, secret.Keyring{Entry: from.Keyring})
			continue
		}
		source, err := s.KeySource(config.LLMKey{Env: from.Env, File: from.File, Command: from.Command, Age: from.Age, Identity: from.Identity})
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// ReadSecret returns the value of a secret from the first of its sources that has one,
// and that source.
func (s *Settings) ReadSecret(ctx context.Context, n *config.NamedSecret) (secret.Value, secret.Source, error) {
	sources, err := s.SecretSources(n)
	if err != nil {
		return secret.Value{}, nil, err
	}
	value, source, err := secret.First(ctx, sources...)
	switch {
	case errors.Is(err, secret.ErrAbsent):
		err = errhint.With(fmt.Errorf("secret %s: %w", n.Name, err), "`atoll secrets set "+n.Name+"` keeps one where secrets."+n.Name+".from is not written")
	case err != nil:
		err = fmt.Errorf("secret %s: %w", n.Name, err)
	}
	return value, source, err
}
