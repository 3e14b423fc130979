package rule_test

import (
	"fmt"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/rule"
)

// sized is a policy with so many rules for names of their own, half of them
// wildcards, and as many denials.
func sized(t testing.TB, rules int) *rule.Policy {
	t.Helper()
	e := config.Egress{Mode: config.EgressEnforce}
	for i := range rules {
		host := fmt.Sprintf("host%d.example.com", i)
		if i%2 == 1 {
			host = "*." + host
		}
		e.Allow = append(e.Allow, config.EgressRule{Host: host, Methods: []string{"GET"}, Paths: []string{"/a/**"}})
		e.Deny = append(e.Deny, config.EgressDeny{Host: fmt.Sprintf("*.denied%d.example.net", i)})
	}
	p, err := rule.Compile(&e, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// BenchmarkDecision compares policies of ten and of a thousand rules.
func BenchmarkDecision(b *testing.B) {
	for _, rules := range []int{10, 1000} {
		p := sized(b, rules)
		for name, host := range map[string]string{"allowed": "a.b.host9.example.com", "denied": "a.denied8.example.net", "unknown": "www.example.org"} {
			b.Run(fmt.Sprintf("%s/%d", name, rules), func(b *testing.B) {
				for b.Loop() {
					p.Request(host, 443, "GET", "/a/b/c")
				}
			})
		}
	}
}

// TestDecisionDoesNotGrowWithRules counts the rules that are looked at, by the
// allocations of a decision: a thousand rules need no more than ten, but for one that
// the average may round up to.
func TestDecisionDoesNotGrowWithRules(t *testing.T) {
	few, many := sized(t, 10), sized(t, 1000)
	for _, host := range []string{"a.b.host9.example.com", "a.denied8.example.net", "www.example.org", "host8.example.com"} {
		a := testing.AllocsPerRun(100, func() { few.Request(host, 443, "GET", "/a/b/c") })
		b := testing.AllocsPerRun(100, func() { many.Request(host, 443, "GET", "/a/b/c") })
		if b > a+1 {
			t.Errorf("%s: %v allocations with ten rules, %v with a thousand", host, a, b)
		}
	}
}
