//go:build linux

package vmcmd_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/contexts"
	"github.com/atoll-run/atoll/internal/testkit/limatest"
)

// mcpClient is a client of the Model Context Protocol with an `atoll mcp` of the Mac.
type mcpClient struct {
	*testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	n     int
	all   strings.Builder // everything that came
	notes []string        // methods of notifications
}

// mcp starts `atoll mcp` and greets it.
func (m *mac) mcp(env ...string) *mcpClient {
	m.Helper()
	c := &mcpClient{T: m.T, cmd: m.command("mcp")}
	c.cmd.Env = append(c.cmd.Env, env...)
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		m.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		m.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	c.out.Buffer(nil, 4<<20)
	if err := c.cmd.Start(); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = c.cmd.Process.Kill() })
	if answer := c.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`); !strings.Contains(answer, "serverInfo") {
		m.Fatal(answer)
	}
	fmt.Fprintln(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// ask sends a request and returns the answer.
func (c *mcpClient) ask(method, params string) string {
	c.Helper()
	c.n++
	fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.n, method, params)
	for c.out.Scan() {
		var message struct {
			ID     int    `json:"id"`
			Method string `json:"method"`
		}
		if err := json.Unmarshal(c.out.Bytes(), &message); err != nil {
			c.Fatalf("%v: %q", err, c.out.Text())
		}
		c.all.WriteString(c.out.Text())
		if message.Method != "" {
			c.notes = append(c.notes, message.Method)
		}
		if message.ID == c.n {
			return c.out.Text()
		}
	}
	c.Fatalf("no answer to %s: %v", method, c.out.Err())
	return ""
}

// tool calls a tool and compares what it says, whether it failed included.
func (c *mcpClient) tool(name, arguments string, failed bool, want ...string) {
	c.Helper()
	var answer struct {
		Result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			IsError bool `json:"isError"`
		} `json:"result"`
	}
	for {
		text := c.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
		if strings.Contains(text, "is being set up") {
			continue
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			c.Fatalf("%v: %s", err, text)
		}
		break
	}
	said := ""
	for _, part := range answer.Result.Content {
		said += part.Text + "\n"
	}
	for _, w := range want {
		if answer.Result.IsError != failed || !strings.Contains(said, w) {
			c.Errorf("%s: failed %v, %q; want %v, %q", name, answer.Result.IsError, said, failed, w)
		}
	}
}

// end ends the client.
func (c *mcpClient) end() {
	c.Helper()
	_ = c.in.Close()
	for c.out.Scan() {
	}
	if err := c.cmd.Wait(); err != nil {
		c.Error(err)
	}
}

// The tools of an agent on the Mac start, look at and stop the virtual machine; the other
// tools are those of the gateway in it.
func TestMCPDrivesTheVirtualMachine(t *testing.T) {
	m := newMac(t)
	t.Setenv(limatest.GatewayVariable, "1")
	m.configure("")
	for _, name := range []string{"sandbox_up", "sandbox_down", "sandbox_status"} {
		c := m.mcp("PATH=" + t.TempDir())
		c.tool(name, "{}", true, "limactl is not installed", "hint: run `brew install lima`")
		c.end()
	}
	c := m.mcp()
	if list := c.ask("tools/list", "{}"); !strings.Contains(list, "sandbox_up") || strings.Contains(list, "sandbox_exec") {
		t.Error(list)
	}
	c.tool("sandbox_status", "{}", false, "machine    atoll-work, none", "sandbox_up starts it")
	c.tool("sandbox_down", "{}", false, "there is no virtual machine")
	c.tool("sandbox_exec", `{"command":"true"}`, true, "the tool sandbox_up starts it")
	c.tool("sandbox_up", "{}", false, "machine    atoll-work, running", "sandbox    ")
	if list := c.ask("tools/list", "{}"); !strings.Contains(list, "sandbox_exec") || !slices.Contains(c.notes, "notifications/tools/list_changed") {
		t.Errorf("%s %q", list, c.notes)
	}
	c.tool("sandbox_exec", `{"command":"echo by $((40+2)) mcp; cat /workspace/main.go"}`, false, "by 42 mcp\npackage main")
	c.tool("sandbox_status", "{}", false, "mounts     as declared", "gateway    healthy", "sandbox    ")
	m.others(c)
	c.tool("sandbox_down", "{}", false, "stopped: atoll-work")
	m.must("stopped", "status")
	c.tool("sandbox_status", "{}", false, "machine    atoll-work, stopped")
	c.tool("sandbox_down", "{}", false, "stopped: atoll-work")
	c.tool("sandbox_up", "{}", false, "machine    atoll-work, running")
	c.tool("sandbox_exec", `{"command":"echo again"}`, false, "again")
	second := m.mcp() // finds it running
	second.tool("sandbox_up", "{}", false, "machine    atoll-work, running")
	second.end()
	c.end()
	for _, secret := range []string{m.context().Token, "sk-test-1234"} {
		if strings.Contains(c.all.String()+second.all.String(), secret) {
			t.Errorf("%s is in a result", secret)
		}
	}
	m.must("", "delete", "--discard")
}

// context returns the context of the virtual machine.
func (m *mac) context() contexts.Context {
	m.Helper()
	all, err := contexts.Load(m.env["ATOLL_STATE_DIR"])
	if err != nil {
		m.Fatal(err)
	}
	return all.Contexts["atoll-work"]
}

// others runs a sandbox of another client inside, with which sandbox_down leaves the
// virtual machine running.
func (m *mac) others(c *mcpClient) {
	m.Helper()
	to := m.context()
	gateway, err := client.New(client.Options{URL: to.URL, Token: to.Token})
	if err != nil {
		m.Fatal(err)
	}
	defer gateway.Close()
	box, err := gateway.CreateSandbox(m.Context(), &api.CreateSandbox{})
	if err != nil {
		m.Fatal(err)
	}
	c.tool("sandbox_down", "{}", false, "atoll-work goes on: 1 others run in it")
	m.must("running", "status")
	if _, err := gateway.RemoveSandbox(m.Context(), box.ID); err != nil {
		m.Error(err)
	}
}
