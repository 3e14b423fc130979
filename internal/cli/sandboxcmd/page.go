package sandboxcmd

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
)

const (
	pageWidth  = 100 // where long values are wrapped
	factIndent = 19  // where values begin
)

// page writes explain for a person: sections of facts, each with its origin.
// Text is made printable here, before any colour is added.
type page struct {
	e     *env
	style console.Style
	agent *config.Agent
	x     *explanation
}

func (pg *page) print(text string) { fmt.Fprintln(pg.e.Out, text) }

func (pg *page) title(text string) { pg.print("\n" + pg.style.Bold(text)) }

// fact prints one value and, dimmed, the setting that it came from or that
// would change it; "" for what is no setting.
func (pg *page) fact(name, value, setting string) {
	paint := func(text string) string { return text }
	pg.painted(name, value, setting, paint)
}

// machineDefault is the origin of a value that no setting gives.
const machineDefault = "default of this machine"

func (pg *page) painted(name, value, setting string, paint func(string) string) {
	lines := console.Wrapped(console.Printable(value), pageWidth-factIndent)
	for i, line := range lines {
		lines[i] = paint(line)
	}
	text := strings.Join(lines, "\n"+strings.Repeat(" ", factIndent))
	if setting == machineDefault {
		text += pg.style.Dim("  ← " + machineDefault)
	} else if setting != "" {
		text += pg.style.Dim("  ← " + console.Printable(settingText(console.OriginOf(pg.agent, setting), setting)))
	}
	pg.print(fmt.Sprintf("  %-16s %s", name, text))
}

// note prints a line below the values.
func (pg *page) note(text string) {
	pg.print(strings.Repeat(" ", factIndent) + pg.style.Dim(console.Printable(text)))
}

// settingText names the place of a value, or the key that would change it.
func settingText(o config.Origin, setting string) string {
	if o.Path == "" && o.Source != config.FromProject {
		return "default of " + setting
	}
	return console.OriginText(o)
}

func listText(list []string) string {
	if len(list) == 0 {
		return "(none)"
	}
	return strings.Join(list, ", ")
}
