package client

import (
	"context"
	"strings"

	"github.com/atoll-run/atoll/internal/egress/preset"
)

// golang asks go for its module proxies and its checksum database.
func (r *reader) golang(ctx context.Context) preset.Found {
	text, err := r.output(ctx, []string{"GOPROXY", "GOSUMDB", "GOENV", "GOROOT"}, "go", "env", "GOPROXY", "GOSUMDB")
	if err != nil {
		return preset.Found{Err: err}
	}
	proxies, database, _ := strings.Cut(text, "\n")
	addresses := strings.FieldsFunc(proxies, func(c rune) bool { return c == ',' || c == '|' })
	return found("go", append(addresses, checksumDatabase(database)))
}

// checksumDatabase returns the address of a value of GOSUMDB: NAME, NAME+KEY, or
// either with a URL.
func checksumDatabase(text string) string {
	fields := strings.Fields(text)
	switch {
	case len(fields) == 0 || fields[0] == "off":
		return ""
	case len(fields) > 1:
		return fields[1]
	}
	name, _, _ := strings.Cut(fields[0], "+")
	return "https://" + name
}
