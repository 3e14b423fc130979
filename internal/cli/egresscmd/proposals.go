package egresscmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// proposedSince is how far back Proposals looks.
const proposedSince = 24 * time.Hour

// Proposals returns the rules that propose would write for what was learned, a line each,
// and writes nothing.
func Proposals(ctx context.Context, s *provide.Settings) (string, error) {
	found, err := records(s, &filter{from: time.Now().Add(-proposedSince)}, maxRecords)
	if err != nil {
		return "", err
	}
	list := proposals(ctx, seen(found, false))
	if len(list) == 0 {
		return "nothing was learned: the person can run a command with `atoll egress learn -- COMMAND`\n", nil
	}
	var b strings.Builder
	for i := range list {
		p := &list[i]
		fmt.Fprintf(&b, "%q  %d connections", p.Rule, p.Connections)
		if p.LeftOut != "" {
			fmt.Fprintf(&b, ", left out: %s", console.Printable(p.LeftOut))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}
