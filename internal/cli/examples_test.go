package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
)

// recorder stands in for atoll in examples: it writes its arguments down, each
// ended by a zero byte, and each call by a one.
const recorder = `#!/bin/sh
for word; do printf '%s\0' "$word"; done >>"$CALLS"
printf '\001' >>"$CALLS"
`

// callsIn has a real shell run a text, in which atoll and all other programs do
// nothing, and returns the arguments of every call of atoll.
func callsIn(t *testing.T, text string) (calls [][]string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("atoll", recorder)
	for _, other := range []string{"git", "jq", "tar"} {
		write(other, "#!/bin/sh\n")
	}
	write("task.md", "a task\n")
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-euc", text)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir, "HOME=" + dir, "CALLS=" + filepath.Join(dir, "calls")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s in\n%s", err, out, text)
	}
	data, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for call := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x01"), "\x01") {
		calls = append(calls, strings.Split(strings.TrimSuffix(call, "\x00"), "\x00"))
	}
	return calls
}

// parsed returns the command that a call means, after its flags and arguments were
// found to be good.
func parsed(t *testing.T, args []string) *cobra.Command {
	t.Helper()
	e := console.NewEnv(&console.Terminal{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, In: &bytes.Buffer{}, Getenv: func(string) string { return "" }})
	cmd, rest, err := newRootCommand(e, "").Find(args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	words := cmd.Flags().Args()
	if cmd.DisableFlagParsing {
		words = rest
	}
	if err := cmd.ValidateArgs(words); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if takesWords := strings.Contains(cmd.Use, "[TASK]") || strings.Contains(cmd.Use, "[SANDBOX"); cmd.HasSubCommands() && !takesWords && len(words) > 0 {
		t.Fatalf("%q: %s has no command %s", args, cmd.CommandPath(), words[0])
	}
	return cmd
}

func TestExamplesOfHelpAreGood(t *testing.T) {
	eachCommand(newRootCommand(console.NewEnv(console.System()), ""), func(cmd *cobra.Command) {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			if cmd.Example == "" {
				t.Fatal("no example")
			}
			own := false
			for _, call := range callsIn(t, cmd.Example) {
				path := parsed(t, call).CommandPath()
				own = own || path == cmd.CommandPath() || strings.HasPrefix(path, cmd.CommandPath()+" ")
			}
			if !own {
				t.Errorf("none of the examples is of it:\n%s", cmd.Example)
			}
		})
	})
}

// harmless are verbs whose examples can be run in an empty place.
var harmless = []string{
	"atoll audit tail", "atoll config check", "atoll config schema", "atoll config show", "atoll images list", "atoll relay status", "atoll runs list",
	"atoll runs cost", "atoll sandbox list", "atoll sandbox prune", "atoll sandbox ps", "atoll token list", "atoll tool list", "atoll version", "atoll ps",
	"atoll sandbox recreate", "atoll token create", "atoll volumes list",
}

func TestExamplesOfHelpRun(t *testing.T) {
	ran := 0
	eachCommand(newRootCommand(console.NewEnv(console.System()), ""), func(cmd *cobra.Command) {
		if !slices.Contains(harmless, cmd.CommandPath()) {
			return
		}
		atoll := emptyPlace(t)
		for _, call := range callsIn(t, cmd.Example) {
			if parsed(t, call).CommandPath() != cmd.CommandPath() || slices.ContainsFunc(call, isAnID) {
				continue
			}
			ran++
			if out, code := atoll(call); code != 0 {
				t.Errorf("%q: %d, %s", call, code, out)
			}
		}
	})
	if ran < 2*len(harmless)-len(harmless)/2 {
		t.Errorf("only %d examples ran", ran)
	}
}

// emptyPlace returns a way to call atoll where there is no configuration, no state
// and no engine.
func emptyPlace(t *testing.T) func(args []string) (said string, code int) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	nowhere := "unix://" + filepath.Join(dir, "none.sock")
	env := map[string]string{"ATOLL_STATE_DIR": filepath.Join(dir, "state"), "DOCKER_HOST": nowhere, "CONTAINER_HOST": nowhere, "HOME": dir}
	return func(args []string) (string, int) {
		var said bytes.Buffer
		code := Main(t.Context(), args, &console.Terminal{In: &bytes.Buffer{}, Out: &said, Err: &said, Getenv: func(name string) string { return env[name] }})
		return said.String(), code
	}
}

// isAnID reports whether a word names something that an empty place has not.
func isAnID(word string) bool {
	return word == "run-42" || word == "agent-main" || strings.HasPrefix(word, "~") || strings.HasPrefix(word, "/")
}
