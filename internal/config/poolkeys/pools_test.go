package poolkeys_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/poolkeys"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]map[string]int{
		`{}`: {},
		`{pools: {main: {size: 3}, api: {size: 0}}}`: {"main": 3},
		`{pools: {main: {}, api: {size: 64}}}`:       {"api": 64},
		`{agents: {entries: {a: {}, b: {}, c: {}, d: {}}}, pools: {a: {size: 64}, b: {size: 64}, c: {size: 64}, d: {size: 64}}}`: {"a": 64, "b": 64, "c": 64, "d": 64},
	} {
		c, err := config.Parse("atoll.json5", []byte(text), config.Environment{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := poolkeys.Sizes(c.Pools()); !maps.Equal(got, want) {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestProblems(t *testing.T) {
	for text, want := range map[string]string{
		`{pools: {main: {size: 65}}}`:                            "64",
		`{pools: {main: {size: -1}}}`:                            "0",
		`{pools: {main: {size: "3"}}}`:                           "pools.main.size",
		`{pools: {"no such/agent": {size: 1}}}`:                  "pools",
		`{pools: {main: {sizes: 1}}}`:                            "size",
		`{agents: {entries: {a: {}}}, pools: {main: {size: 1}}}`: "there is no such agent",
		`{agents: {entries: {a: {}, b: {}, c: {}, d: {}, e: {}}}, pools: {a: {size: 64}, b: {size: 64}, c: {size: 64}, d: {size: 64}, e: {size: 1}}}`: "257 sandboxes, and may have 256",
	} {
		_, err := config.Parse("atoll.json5", []byte(text), config.Environment{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
