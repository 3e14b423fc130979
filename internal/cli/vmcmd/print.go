package vmcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"text/tabwriter"

	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/terminal"
)

func mapsKeys(o vmkeys.Origins) iter.Seq[string] { return maps.Keys(o) }

// flatten returns the values of a profile by their keys, joined with points.
func flatten(p vmkeys.Profile) (map[string]any, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	flat := map[string]any{}
	for key, v := range tree {
		inner, ok := v.(map[string]any)
		if !ok {
			flat[key] = v
			continue
		}
		for below, v := range inner {
			flat[key+"."+below] = v
		}
	}
	return flat, nil
}

// text is a value for a person.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case float64:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprint(v)
}

func encode(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

func table(out io.Writer, rows func(io.Writer)) error {
	w := tabwriter.NewWriter(terminal.Harmless(out), 0, 8, 2, ' ', 0)
	rows(w)
	return w.Flush()
}
