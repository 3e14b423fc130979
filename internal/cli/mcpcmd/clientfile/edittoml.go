package clientfile

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const tomlKey = "mcp_servers"

var (
	// ownTable matches the line that opens our table, or one below it.
	ownTable = regexp.MustCompile(`^\s*\[\s*mcp_servers\s*\.\s*("atoll"|'atoll'|atoll)\s*(\.[^\]]*)?\]`)
	anyTable = regexp.MustCompile(`^\s*\[`)
)

// TOML edits the tables of mcp_servers. The rest of the text stays.
func TOML(text []byte, e *Entry) ([]byte, error) {
	var before map[string]any
	if err := toml.Unmarshal(text, &before); err != nil {
		return nil, err
	}
	if servers, _ := before[tomlKey].(map[string]any); e != nil && isEntry(servers[ServerName], e) {
		return text, nil
	}
	after := cutTables(string(text))
	if e != nil {
		table, err := toml.Marshal(map[string]any{tomlKey: map[string]any{ServerName: e}})
		if err != nil {
			return nil, err
		}
		if after != "" {
			after = strings.TrimRight(after, "\n") + "\n\n"
		}
		after += strings.TrimPrefix(string(table), "["+tomlKey+"]\n")
	}
	return []byte(after), checkTOML(before, after, e)
}

// cutTables removes our tables, from the line that opens one to the next that opens another.
func cutTables(text string) string {
	var b strings.Builder
	own := false
	for line := range strings.Lines(text) {
		switch {
		case ownTable.MatchString(line):
			own = true
		case anyTable.MatchString(line):
			own = false
		}
		if !own {
			b.WriteString(line)
		}
	}
	if cut := b.String(); len(cut) < len(text) {
		return strings.TrimRight(cut, "\n") + strings.Repeat("\n", min(1, len(strings.TrimSpace(cut))))
	}
	return text
}

// checkTOML refuses a text that says anything else about the rest than before.
func checkTOML(before map[string]any, after string, e *Entry) error {
	var value map[string]any
	if err := toml.Unmarshal([]byte(after), &value); err != nil {
		return err
	}
	servers, _ := value[tomlKey].(map[string]any)
	if _, there := servers[ServerName]; there != (e != nil) || !reflect.DeepEqual(without(before, tomlKey), without(value, tomlKey)) {
		return errors.New("it cannot be changed without changing the rest")
	}
	return nil
}
