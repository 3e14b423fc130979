package inject

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/secret"
)

// Bind returns a secret of the configuration with its value.
func Bind(n *config.NamedSecret, value secret.Value) (Secret, error) {
	s := Secret{Name: n.Name, Value: value, Header: n.Header, Form: n.Form, Env: n.Env}
	for _, host := range n.Hosts {
		p, err := hostname.ParsePattern(host)
		if err != nil {
			return s, fmt.Errorf("secret %s, host %q: %w", n.Name, host, err)
		}
		s.Hosts = append(s.Hosts, p)
	}
	return s, nil
}
