package inject

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

// Secret is a secret that was given to callers.
type Secret struct {
	Name   string
	Value  secret.Value
	Hosts  []hostname.Pattern // that requests with the value may go to
	Header string             // that the value may stand in, Authorization for example
	Form   string             // of the header's value, with {} for the value; "": as the caller wrote it
	Env    string             // the variable inside that has the placeholder
}

// Set is the secrets of the callers of one grant in one sandbox.
type Set struct {
	given []given
	// every is what a request may have in no other place: the placeholders of all
	// secrets of the sandbox, given or not.
	every []form
}

// given is a secret with its placeholder.
type given struct {
	Secret
	placeholder string
	answers     []form // of the value, in answers
}

// placeholders is the directory of placeholders, below that of a sandbox.
const placeholders = "placeholders"

// Open returns the set of secrets, with the placeholders that dir has of a sandbox. It
// makes those that are missing; they stay until dir is removed.
func Open(dir string, secrets []Secret) (*Set, error) {
	dir = filepath.Join(dir, placeholders)
	s := &Set{}
	for i := range secrets {
		g, err := open(dir, &secrets[i])
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", secrets[i].Name, err)
		}
		s.given = append(s.given, g)
	}
	kept, err := secretstore.All(dir)
	if err != nil {
		return nil, err
	}
	for name, placeholder := range kept {
		s.every = append(s.every, formsOf(name, placeholder, "")...)
	}
	return s, nil
}

func open(dir string, s *Secret) (given, error) {
	if err := s.check(); err != nil {
		return given{}, err
	}
	made, err := newPlaceholder(s.Value.Reveal())
	if err != nil {
		return given{}, err
	}
	kept, err := secretstore.KeepFirst(dir, s.Name, made)
	if err != nil {
		return given{}, err
	}
	return given{Secret: *s, placeholder: kept, answers: formsOf(s.Name, s.Value.Reveal(), kept)}, nil
}

func (s *Secret) check() error {
	if err := secretstore.CheckName(s.Name); err != nil {
		return err
	}
	switch {
	case len(s.Hosts) == 0:
		return fmt.Errorf("it is bound to no host")
	case !isFieldName(s.Header):
		return fmt.Errorf("%q is not the name of a header", s.Header)
	case s.Form != "" && strings.Count(s.Form, hole) != 1:
		return fmt.Errorf("its form must have %s once", hole)
	}
	return nil
}

// hole is where the value stands in a form.
const hole = "{}"

// Environment returns the variables for programs inside, with the placeholders.
func (s *Set) Environment() map[string]string {
	variables := map[string]string{}
	if s == nil {
		return variables
	}
	for i := range s.given {
		if g := &s.given[i]; g.Env != "" {
			variables[g.Env] = g.placeholder
		}
	}
	return variables
}

// Answers returns the filter for one answer of a host, which takes out the values that
// are bound to it; nil if there are none.
func (s *Set) Answers(host string) *Filter {
	if s == nil {
		return nil
	}
	var forms []form
	for i := range s.given {
		if s.given[i].isBound(host) {
			forms = append(forms, s.given[i].answers...)
		}
	}
	if len(forms) == 0 {
		return nil
	}
	return &Filter{forms: forms}
}

// Bodies returns the filter for the body of one request, which finds placeholders; nil
// if the sandbox has none.
func (s *Set) Bodies() *Filter {
	if s == nil || len(s.every) == 0 {
		return nil
	}
	return &Filter{forms: s.every}
}

func (g *given) isBound(host string) bool {
	return slices.ContainsFunc(g.Hosts, func(p hostname.Pattern) bool { return p.Match(host) })
}
