package openclawtest_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/openclawtest"
)

const masterKey = "sk-master-of-the-run-0123456789"

// inside is a task with tools that also looks at the walls: who it is, what it
// can reach, what it knows, and whether anything listens but the port of models.
func inside() fakellm.Script {
	after := func(result string, turn fakellm.Turn) fakellm.Turn {
		turn.When = result
		return turn
	}
	look := `id -u; stat -c owner=%u . ; env | grep -ci master; cat /sys/class/net/*/address | wc -l; ` +
		`awk 'NR>1 && $4==\"0A\" {print \"listens on\", $2}' /proc/net/tcp /proc/net/tcp6; echo looked`
	return fakellm.Script{
		fakellm.Use("write", `{"path":"notes/a.txt","content":"hello\nworld\n"}`),
		after("Successfully wrote", fakellm.Use("exec", `{"command":"`+look+`"}`)),
		after("looked", fakellm.Use("exec", `{"command":"cat notes/a.txt"}`)),
		after("hello\nworld", fakellm.Say("all done")),
	}
}

// The real OpenClaw completes a task with tool calls inside a Docker sandbox
// without a network; its model traffic goes through our proxy, which alone has
// the key, and its receipt is LiteLLM's figure.
func TestOpenClawInARun(t *testing.T) {
	if _, err := openclawtest.Find(openclawtest.Earlier, os.Getenv); err != nil {
		need.Missing(t, err)
	}
	completes(t, fmt.Sprintf(`install: %q`, openclawtest.Root(openclawtest.Earlier, os.Getenv)))
}

// The same with the current release, as `atoll images build openclaw` packs it,
// within the memory that a run has by default. Seen to fail (oom_killed) without
// the flag that leaves WebAssembly as it is.
func TestOpenClawFromItsImageInARun(t *testing.T) {
	completes(t, "")
}

// The owner's behaviour files are those that the program reads, missing ones are
// made, and the memories of the agent are found.
func TestOpenClawReadsTheOwnersFiles(t *testing.T) {
	found := fakellm.Use("tool_call", `{"id":"memory_get","args":{"path":"MEMORY.md"}}`)
	last := fakellm.Use("exec", `{"command":"cat AGENTS.md SOUL.md TOOLS.md"}`)
	last.When = "tangerine"
	done := fakellm.Say("all done")
	done.When = "as my owner says"
	upstream, err := litellmtest.Listen(t.Context(), "tcp", "127.0.0.1:0", litellmtest.Options{MasterKey: masterKey,
		Models: map[string]litellmtest.Model{"m": {Input: 1e-06, Output: 1e-05, Script: fakellm.Script{found, last, done}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upstream.Close() })
	receipt := startRun(t, upstream.URL(), "", "AGENTS.md", "Do as my owner says.", "MEMORY.md", "The code word is tangerine.")
	if receipt.Error != nil || receipt.Text != "all done" || upstream.Err() != nil {
		t.Fatalf("%+v %q, the model: %v", receipt.Error, receipt.Text, upstream.Err())
	}
	requests := upstream.Requests()
	seen := requests[len(requests)-1].Last()
	for _, want := range []string{"as my owner says", "Be direct and concise", "Tools here"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is not in the behaviour files: %s", want, seen)
		}
	}
}

// completes has a run of OpenClaw do the task, with what runs.openclaw says.
func completes(t *testing.T, openclaw string) {
	t.Helper()
	upstream, err := litellmtest.Listen(t.Context(), "tcp", "127.0.0.1:0", litellmtest.Options{MasterKey: masterKey,
		Models: map[string]litellmtest.Model{"m": {Input: 1e-06, Output: 1e-05, Script: inside()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upstream.Close() })
	receipt := startRun(t, upstream.URL(), openclaw)
	t.Logf("%d MB at most, %s", receipt.PeakMemory>>20, receipt.Ended.Sub(receipt.Started))
	if receipt.Error != nil || receipt.Text != "all done" || upstream.Err() != nil {
		t.Fatalf("%+v %q, the model: %v", receipt.Error, receipt.Text, upstream.Err())
	}
	truth := int64(0)
	for _, row := range upstream.Rows() {
		truth += int64(row.Spend*1e6 + .5)
	}
	if b := receipt.Bill; b.Provisional || b.Source != "litellm" || b.MicroUSD != truth || truth == 0 || b.Calls != len(upstream.Rows()) {
		t.Errorf("bill %+v; LiteLLM says %d in %d calls", b, truth, len(upstream.Rows()))
	}
	checkWalls(t, upstream)
}

// checkWalls reads what the script saw inside.
func checkWalls(t *testing.T, upstream *litellmtest.Server) {
	t.Helper()
	seen := ""
	for _, r := range upstream.Requests() {
		if last := r.Last(); strings.Contains(last, "looked") {
			seen = last
		}
	}
	if !strings.Contains(seen, "1001\nowner=1001\n0\n1\n") {
		t.Errorf("the user, the owner, keys or networks are not as they should be: %s", seen)
	}
	for line := range strings.Lines(seen) {
		if strings.HasPrefix(line, "listens on") && !strings.HasSuffix(strings.TrimSpace(line), ":1F90") { // 8080
			t.Errorf("a gateway listens inside: %s", line)
		}
	}
}

// startRun carries out a run as a person does, and returns its receipt. Files are
// names and contents in the agent workspace.
func startRun(t *testing.T, url, openclaw string, files ...string) (receipt run.Receipt) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "atoll.json5")
	config := fmt.Sprintf(`{
  agents: {defaults: {workspace: %q, model: "litellm/m", sandbox: {mode: "all", backend: "docker", docker: {image: %q, containerPrefix: %q}}}},
  llm: {providers: {litellm: {url: %q, keys: [{env: "LITELLM_MASTER_KEY"}]}}},
  runs: {openclaw: {%s}},
}`, filepath.Join(dir, "agent"), enginetest.Image, strings.ToLower(rand.Text()[:8])+"-", url, openclaw)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "agent"), 0o755); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(files); n += 2 {
		if err := os.WriteFile(filepath.Join(dir, "agent", files[n]), []byte(files[n+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	atoll := filepath.Join(programs(t), "atoll")
	call := func(args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), atoll, append([]string{"--config", file}, args...)...)
		cmd.Env = append(os.Environ(), "ATOLL_STATE_DIR="+filepath.Join(dir, "state"), "DOCKER_HOST="+enginetest.Docker(t), "LITELLM_MASTER_KEY="+masterKey)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("atoll %s: %v", strings.Join(args, " "), err)
		}
		return out
	}
	call("runs", "start", "--variant", "sandbox:openclaw", "-m", "work", "--account", "acme", "--run-id", "claw", "--json")
	if err := json.Unmarshal(call("runs", "show", "claw", "--json"), &receipt); err != nil {
		t.Fatal(err)
	}
	if out := string(call("sandbox", "list", "--json")); !strings.Contains(out, `"containers": []`) {
		t.Errorf("a sandbox is left: %s", out)
	}
	return receipt
}
