// Package poolkeys has the keys of pools: their form in the file and what they may say
// together.
package poolkeys

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// How many sandboxes wait at most, in the pool of one agent and in all pools.
const (
	MaxSize = 64
	MaxAll  = 256
)

// PoolFile is the pool of one agent as a file has it.
type PoolFile struct {
	Size *int `json:"size" min:"0" max:"64" doc:"How many sandboxes of the agent the gateway keeps ready before anybody asks for them; all pools together at most 256."`
}

// Sizes returns how many sandboxes are to wait for each agent; those of 0 are left out.
func Sizes(pools map[string]PoolFile) map[string]int {
	sizes := make(map[string]int, len(pools))
	for agent, p := range pools {
		if p.Size != nil && *p.Size > 0 {
			sizes[agent] = *p.Size
		}
	}
	return sizes
}

// Problem returns what is wrong with the sizes of all pools together, which are given as
// JSON, and what to do about it; "" if nothing is. Sizes that cannot be read are reported
// on their own.
func Problem(text []byte) (message, hint string) {
	var pools map[string]PoolFile
	if json.Unmarshal(text, &pools) != nil {
		return "", ""
	}
	return TooMany(Sizes(pools))
}

// TooMany is Problem for sizes.
func TooMany(sizes map[string]int) (message, hint string) {
	all := 0
	for _, size := range sizes {
		all += size
	}
	if all <= MaxAll {
		return "", ""
	}
	return fmt.Sprintf("all pools together have %d sandboxes, and may have %d", all, MaxAll), "lower the size of some of them"
}
