package rule

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/hostname"
)

// Policy is the rules of one sandbox. It does not change.
type Policy struct {
	mode     config.EgressMode
	modeText string      // the mode as written, with its key and line
	written  []*compiled // the rules in their order
	allow    index[*compiled]
	deny     index[denial]
	via      index[string]
	models   map[string]bool // hosts of the configured model providers
	private  []netip.Prefix
	upstream string
	limits   config.EgressLimits
}

// denial is one entry of deny.
type denial struct {
	port int // 0 is every port
	text string
}

// index finds what is said about a name by its labels.
type index[T any] struct {
	exact, below map[string][]T
}

func (x *index[T]) add(p hostname.Pattern, value T) {
	to := &x.exact
	if p.Wildcard {
		to = &x.below
	}
	if *to == nil {
		*to = map[string][]T{}
	}
	(*to)[p.Name] = append((*to)[p.Name], value)
}

// levels yields what is said about a name: of the name itself, then of the
// wildcards above it, the longest first.
func (x *index[T]) levels(name string) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		if values := x.exact[name]; values != nil && !yield(values) {
			return
		}
		if len(x.below) == 0 {
			return
		}
		for above := range hostname.Above(name) {
			if values := x.below[above]; values != nil && !yield(values) {
				return
			}
		}
	}
}

func newPolicy(e *config.Egress) *Policy {
	p := &Policy{
		mode: e.Mode, modeText: describe(fmt.Sprintf("mode: %q", e.Mode), e.ModeAt), models: map[string]bool{},
		private: slices.Clone(e.Private), upstream: e.Upstream, limits: e.Limits,
	}
	if p.mode == "" {
		p.mode = config.EgressOff
	}
	for _, host := range e.ModelHosts {
		p.models[host] = true
	}
	return p
}

func (p *Policy) addVia(via map[string]string) error {
	for pattern, proxy := range via {
		parsed, err := hostname.ParseWidePattern(pattern)
		if err != nil {
			return fmt.Errorf("via %q: %w", pattern, err)
		}
		p.via.add(parsed, proxy)
	}
	return nil
}

// Mode returns the mode of the policy.
func (p *Policy) Mode() config.EgressMode { return p.mode }

// Limits returns what one sandbox may have.
func (p *Policy) Limits() config.EgressLimits { return p.limits }

// madeUp is the network of the addresses that resolvers of some proxies make up
// for every name. Opened, it is open for names that no rule names too.
var madeUp = netip.MustParsePrefix("198.18.0.0/15")

// privateWithoutRule returns the networks that are open for names which the mode
// allows. A stranger can have such a name lead anywhere, so that it is not those
// of the configuration.
func (p *Policy) privateWithoutRule() (list []netip.Prefix) {
	for _, prefix := range p.private {
		if madeUp.Contains(prefix.Addr()) && prefix.Bits() >= madeUp.Bits() {
			list = append(list, prefix)
		}
	}
	return list
}

// Upstream returns the address of the proxy that connections go through, or "".
func (p *Policy) Upstream() string { return p.upstream }

// Via returns the address of the SOCKS proxy for a name, or "".
func (p *Policy) Via(name string) string {
	for proxies := range p.via.levels(strings.ToLower(strings.TrimSuffix(name, "."))) {
		return proxies[0]
	}
	return ""
}

// Ports returns the ports on which a name is answered: those of HTTP, so that a
// refusal can be explained there, and those that rules name for it.
func (p *Policy) Ports(name string) []int {
	ports := []int{portHTTP, portHTTPS}
	name, err := hostname.Canonical(name)
	if err != nil {
		return ports
	}
	for rules := range p.allow.levels(name) {
		for _, c := range rules {
			for port := range c.actions {
				if !slices.Contains(ports, port) {
					ports = append(ports, port)
				}
			}
		}
	}
	slices.Sort(ports)
	return ports
}

// Inspects reports whether a rule has TLS opened, so that programs inside must trust the
// CA of their sandbox.
func (p *Policy) Inspects() bool {
	for _, byName := range []map[string][]*compiled{p.allow.exact, p.allow.below} {
		for _, rules := range byName {
			for _, c := range rules {
				if slices.Contains(slices.Collect(maps.Values(c.actions)), Inspect) {
					return true
				}
			}
		}
	}
	return false
}
