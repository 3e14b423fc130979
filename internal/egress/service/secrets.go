package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/secret"
)

// namedSecrets returns the secrets that rules name.
func (s *Service) namedSecrets(e *config.Egress) ([]config.NamedSecret, error) {
	all, err := s.now().Config.Secrets()
	if err != nil {
		return nil, err
	}
	if err := checkSecrets(e, all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(n config.NamedSecret) bool {
		return !slices.ContainsFunc(e.Allow, func(r config.EgressRule) bool { return r.Secret == n.Name })
	})
	return all, checkVariables(all)
}

// checkVariables refuses secrets of one sandbox that have the same variable inside.
func checkVariables(all []config.NamedSecret) error {
	inside := map[string]string{}
	for _, n := range all {
		if other := inside[n.Env]; n.Env != "" && other != "" {
			return errhint.With(fmt.Errorf("the secrets %q and %q have the same variable %s inside", other, n.Name, n.Env), fmt.Sprintf("give secrets.%s another env", n.Name))
		}
		inside[n.Env] = n.Name
	}
	return nil
}

// readSecrets reads the values of secrets, and gives them to the callers of the egress:
// programs inside have their placeholders.
func (s *Service) readSecrets(ctx context.Context, sandbox string, all []config.NamedSecret) (*inject.Set, error) {
	if len(all) > 0 {
		if err := secret.Harden(); err != nil { // before values are read
			return nil, err
		}
	}
	var given []inject.Secret
	for i := range all {
		n := &all[i]
		value, _, err := s.now().ReadSecret(ctx, n)
		if err != nil {
			return nil, err
		}
		bound, err := inject.Bind(n, value)
		if err != nil {
			return nil, err
		}
		given = append(given, bound)
	}
	return inject.Open(s.EgressDir(sandbox), given)
}

// checkSecrets wants every secret that a rule names, in the configuration or on the command
// line, to be there and to be bound to the rule's host.
func checkSecrets(e *config.Egress, all []config.NamedSecret) error {
	for _, r := range e.Allow {
		if r.Secret == "" {
			continue
		}
		i := slices.IndexFunc(all, func(n config.NamedSecret) bool { return n.Name == r.Secret })
		if i < 0 {
			return errhint.With(fmt.Errorf("the rule %s: there is no secret %q", r, r.Secret), fmt.Sprintf("add secrets: { %s: { hosts: [%q] } } to the configuration", r.Secret, r.Host))
		}
		if !isBound(all[i].Hosts, r.Host) {
			return errhint.With(fmt.Errorf("the rule %s: the secret %q is not bound to %s", r, r.Secret, r.Host), fmt.Sprintf("add %q to secrets.%s.hosts", r.Host, r.Secret))
		}
	}
	return nil
}

// isBound reports whether the hosts that a secret is bound to contain those of a rule.
func isBound(hosts []string, rule string) bool {
	want, err := hostname.ParsePattern(rule)
	return err == nil && slices.ContainsFunc(hosts, func(host string) bool {
		p, err := hostname.ParsePattern(host)
		return err == nil && p.Covers(want)
	})
}
