package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/nonlinux"
)

// A command line that begins with a verb makes only that one, so the names must
// be theirs.
func TestVerbsHaveTheirNames(t *testing.T) {
	for _, members := range verbs {
		for _, v := range members {
			e := console.NewEnv(console.System())
			if got := v.make(e).Name(); got != v.name {
				t.Errorf("%q makes %q", v.name, got)
			}
			if n := len(newRootCommand(e, chosen([]string{v.name, "--help"})).Commands()); n > 2 {
				t.Errorf("%s makes %d commands", v.name, n)
			}
		}
	}
}

func TestChosenVerb(t *testing.T) {
	all := len(newRootCommand(console.NewEnv(console.System()), "").Commands())
	for _, args := range [][]string{nil, {"--help"}, {"help", "run"}, {"-v", "run"}, {"nonsense"}, {"__complete", "r"}} {
		if verb := chosen(args); verb != "" {
			t.Errorf("%q chooses %q", args, verb)
		}
	}
	if groups := slices.Concat(verbs[groupWork], verbs[groupMoney], verbs[groupSetup], verbs[groupOther]); all < len(groups) {
		t.Errorf("%d commands, %d verbs", all, len(groups))
	}
}

// verbsWithoutJSON serve, copy, pass another program's output on, or only say that it is done.
var verbsWithoutJSON = []string{"config untrust", "context add", "context rm", "context use", "cp", "docker", "gateway", "openclaw egress", "proxy", "sandbox cp", "shell", "ssh proxy", "token pair", "token revoke",
	"vm delete", "vm down", "vm init", "vm logs", "vm onboard", "vm restart", "vm shell", "vm ssh", "vm up"}

func TestVerbsThatPrintDataTakeJSON(t *testing.T) {
	e := console.NewEnv(console.System())
	var without []string
	eachCommand(newRootCommand(e, ""), func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() && cmd.Flags().Lookup("json") == nil {
			without = append(without, strings.TrimPrefix(cmd.CommandPath(), "atoll "))
		}
	})
	if got, want := strings.Join(without, ", "), strings.Join(verbsWithoutJSON, ", "); got != want {
		t.Errorf("without --json: %s; want %s", got, want)
	}
}

// Every verb works on other systems too, or says there that it needs Linux.
func TestVerbsElsewhere(t *testing.T) {
	var here []string
	for _, members := range verbs {
		for _, v := range members {
			here = append(here, v.name)
		}
	}
	slices.Sort(here)
	if there := slices.Sorted(slices.Values(append(verbsElsewhere(t), nonlinux.LinuxOnly()...))); !slices.Equal(here, there) {
		t.Errorf("here are %v, elsewhere %v", here, there)
	}
}

// verbsElsewhere are the verbs that the program completes on another system, without
// those of the library that reads command lines.
func verbsElsewhere(t *testing.T) (names []string) {
	t.Helper()
	var out strings.Builder
	terminal := &nonlinux.Terminal{Out: &out, Err: io.Discard, Home: t.TempDir(), System: "plan9", Getenv: func(string) string { return "" }}
	if code := nonlinux.Main(t.Context(), []string{"__complete", ""}, terminal); code != 0 {
		t.Fatalf("%d: %s", code, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if name, _, is := strings.Cut(line, "\t"); is && name != "help" && name != "completion" {
			names = append(names, name)
		}
	}
	return names
}
