package agentcmd

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/run"
)

// maxShown bounds what is shown of a tool's call or result.
const maxShown = 100

// taskView shows at a terminal what a program does. Where nobody looks on, the
// answer alone is printed.
type taskView struct {
	*start
	told string // what the program said last
}

func (v *taskView) show(e *run.Event) {
	if e.Type == "text_delta" {
		v.told = e.Text
	}
	if !v.IsTerminal || v.asJSON {
		return
	}
	switch e.Type {
	case "text_delta":
		for line := range strings.Lines(e.Text) {
			fmt.Fprintln(v.Out, console.Printable(strings.TrimSuffix(line, "\n")))
		}
	case "tool_call":
		fmt.Fprintln(v.Out, v.Style().Bold("→ "+console.Printable(e.Call.Name))+" "+oneLine(e.Call.Args))
	case "tool_result":
		mark := "← "
		if e.IsError {
			mark = "✗ "
		}
		fmt.Fprintln(v.Out, v.Style().Dim(mark+oneLine(e.Text)))
	}
}

// finish prints the answer, unless it was shown as it came.
func (v *taskView) finish(text string) {
	if v.IsTerminal && strings.TrimSpace(v.told) == strings.TrimSpace(text) {
		return
	}
	out := v.ForeignOut()
	fmt.Fprintln(out, strings.TrimRight(text, "\n"))
}

// oneLine is the beginning of foreign text in one printable line.
func oneLine(text string) string {
	return console.Shortened(console.Joined(strings.TrimSpace(text)), maxShown)
}
