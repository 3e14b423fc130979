// Package settings shows the settings of an agent to people, without secrets.
package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config"
)

// Flatten turns an agent's settings into one line each, by the paths that
// Origins uses. It goes through their JSON form, whose names are the file's.
func Flatten(agent *config.Agent) map[string]string {
	lines := map[string]string{"workspace": agent.Workspace}
	data, err := json.Marshal(agent.Sandbox)
	if err != nil {
		return lines
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return lines
	}
	flattenInto(lines, "sandbox", tree)
	return lines
}

func flattenInto(lines map[string]string, path string, tree map[string]any) {
	for key, value := range tree {
		if sub, ok := value.(map[string]any); ok {
			flattenInto(lines, path+"."+key, sub)
			continue
		}
		lines[path+"."+key] = valueText(value)
	}
}

// valueText is a value on one line.
func valueText(value any) string {
	switch v := value.(type) {
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, valueText(item))
		}
		if len(items) == 0 {
			return "(none)"
		}
		return strings.Join(items, ", ")
	case map[string]any:
		var items []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			items = append(items, key+"="+valueText(v[key]))
		}
		return strings.Join(items, ", ")
	default:
		return fmt.Sprint(v)
	}
}
