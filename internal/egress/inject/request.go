package inject

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Leak is a placeholder where it may not be, or another credential where only a
// placeholder may be. It is the reason to refuse a request.
type Leak struct {
	Secret string // its name
	Where  string // in the request
	Reason string
}

func (l *Leak) Error() string { return fmt.Sprintf("secret %s: %s %s", l.Secret, l.Where, l.Reason) }

// Request puts the values of secrets into the header of a request to a host, in the
// place of their placeholders, and reports whether it did. Only the secrets in allowed,
// which the rule for the host names, are put in. The error is a Leak; the request must
// not be sent then.
func (s *Set) Request(host string, allowed []string, target string, header http.Header) (injected bool, err error) {
	if s == nil {
		return false, nil
	}
	if leak := s.leakIn("the address", target); leak != nil {
		return false, leak
	}
	for name, values := range header {
		done, leak := s.field(s.boundTo(host, name, allowed), name, values)
		if leak != nil {
			return false, leak
		}
		injected = injected || done
	}
	return injected, nil
}

// boundTo returns the secrets whose value may stand in a header of a request to a host.
func (s *Set) boundTo(host, header string, allowed []string) []*given {
	var bound []*given
	for i := range s.given {
		if g := &s.given[i]; http.CanonicalHeaderKey(g.Header) == header && slices.Contains(allowed, g.Name) && g.isBound(host) {
			bound = append(bound, g)
		}
	}
	return bound
}

// field puts a value into one header, or looks for placeholders in it.
func (s *Set) field(bound []*given, name string, values []string) (injected bool, leak *Leak) {
	if leak := s.leakIn("the name of a header", name); leak != nil {
		return false, leak
	}
	if len(bound) == 0 {
		return false, s.leakIn("header "+name, values...)
	}
	for _, g := range bound {
		if len(values) != 1 {
			break
		}
		value, rest, ok := g.inject(values[0])
		if !ok {
			continue
		}
		if leak := s.leakIn("header "+name, rest); leak != nil {
			return false, leak
		}
		values[0] = value
		return true, nil
	}
	return false, &Leak{Secret: bound[0].Name, Where: "header " + name, Reason: "must hold its placeholder, once, and no other credential"}
}

// leakIn looks for placeholders in texts, also behind one or two percent-escapings.
func (s *Set) leakIn(where string, texts ...string) *Leak {
	find := s.Bodies()
	if find == nil {
		return nil
	}
	for _, text := range texts {
		for range 3 {
			find.Text(text)
			text = unescape(text)
		}
	}
	if find.Found() == "" {
		return nil
	}
	return &Leak{Secret: find.Found(), Where: where, Reason: "holds its placeholder, which belongs into the header that the secret names, for a host that it is bound to"}
}

// unescape resolves percent-escapes, and leaves a text alone where one is broken.
func unescape(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
