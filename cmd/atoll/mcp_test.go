//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpTools are all tools of the server, sorted. None decides for the person.
var mcpTools = []string{
	"egress_explain", "egress_propose", "sandbox_apply_patch", "sandbox_destroy", "sandbox_down", "sandbox_edit", "sandbox_exec", "sandbox_explain", "sandbox_grep",
	"sandbox_ls", "sandbox_process", "sandbox_read", "sandbox_status", "sandbox_up", "sandbox_verify", "sandbox_view_image", "sandbox_write", "sync_diff", "sync_status",
}

// mcpClient is the SDK's own client of a server that was started in a repository.
type mcpClient struct {
	*sdk.ClientSession
	place    *agentPlace
	process  *exec.Cmd
	said     bytes.Buffer // standard error of the server
	progress atomic.Int64
	answer   atomic.Bool // to what the person is asked
	asked    atomic.Int64
}

func newMCPClient(p *agentPlace, args ...string) *mcpClient {
	p.t.Helper()
	c := &mcpClient{place: p}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { c.progress.Add(1) },
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			c.asked.Add(1)
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"destroy": c.answer.Load()}}, nil
		},
	})
	c.process = exec.CommandContext(p.t.Context(), "atoll", append([]string{"-v", "mcp"}, args...)...)
	c.process.Dir, c.process.Env, c.process.Stderr = p.repository, p.env, &c.said
	var err error
	if c.ClientSession, err = client.Connect(p.t.Context(), &sdk.CommandTransport{Command: c.process}, nil); err != nil {
		p.t.Fatalf("%v\n%s", err, c.said.String())
	}
	return c
}

// call calls a tool and returns its text.
func (c *mcpClient) call(ctx context.Context, name string, args map[string]any) (string, error) {
	params := &sdk.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken(name)
	result, err := c.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	text := ""
	for _, content := range result.Content {
		if t, ok := content.(*sdk.TextContent); ok {
			text += t.Text
		}
	}
	if result.IsError {
		return text, fmt.Errorf("%s", text)
	}
	return text, nil
}

// must calls a tool that has to succeed and say something.
func (c *mcpClient) must(want, name string, args map[string]any) string {
	c.place.t.Helper()
	text, err := c.call(c.place.t.Context(), name, args)
	if err != nil || !strings.Contains(text, want) {
		c.place.t.Errorf("%s %v: %v, want %q in\n%s", name, args, err, want, text)
	}
	return text
}

// refused calls a tool that has to fail for a reason.
func (c *mcpClient) refused(want, name string, args map[string]any) {
	c.place.t.Helper()
	if text, err := c.call(c.place.t.Context(), name, args); err == nil || !strings.Contains(text, want) {
		c.place.t.Errorf("%s %v: %v, want %q in\n%s", name, args, err, want, text)
	}
}

type arguments = map[string]any

// A client works in the sandbox of the checkout, and nothing of it reaches the checkout.
func TestMCP(t *testing.T) {
	p := newAgentPlace(t, 10)
	before := p.snapshot()
	c := newMCPClient(p)
	c.checkTools()
	c.must("hello\n", "sandbox_exec", arguments{"command": "echo hello; pwd"})
	c.must("[exit code 3,", "sandbox_exec", arguments{"argv": []string{"sh", "-c", "exit 3"}}) // a result, no failed call
	c.must("", "sandbox_write", arguments{"path": "made.txt", "content": "made by a client\n"})
	c.must("made by a client", "sandbox_read", arguments{"path": "made.txt"})
	c.must("made.txt", "sandbox_ls", arguments{})
	c.must(`"made.txt"`, "sync_status", arguments{})
	c.must("+made by a client", "sync_diff", arguments{"path": "made.txt"})
	c.must("running", "sandbox_status", arguments{})
	c.must("allowed true", "sandbox_explain", arguments{"tool": "sandbox_exec", "path": "made.txt"})
	c.must("promises hold", "sandbox_verify", arguments{})
	c.must("denied: example.org:443", "egress_explain", arguments{"address": "https://example.org/"})
	c.must("atoll egress adopt", "egress_propose", arguments{})
	c.refused("is not known", "sandbox_exec", arguments{"command": "true", "host": true})
	c.refused("escapes", "sandbox_read", arguments{"path": "../../../etc/shadow"})
	c.checkCancel()
	c.checkLong()
	c.checkDestroy()
	c.must("started in the background", "sandbox_exec", arguments{"command": "exec sleep 1000", "background": true})
	if err := c.Close(); err != nil {
		t.Errorf("%v\n%s", err, c.said.String())
	}
	if out, _ := p.must("", "ps", "--json"); strings.Contains(out, `"running": true`) {
		t.Errorf("the sandbox runs on:\n%s", out)
	}
	same(t, before, p.snapshot())
}

// Root is not needed.
func TestMCPAsUser(t *testing.T) { asSomeone(t, "TestMCP", nil) }

func (c *mcpClient) checkTools() {
	c.place.t.Helper()
	list, err := c.ListTools(c.place.t.Context(), nil)
	if err != nil {
		c.place.t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Name == "sandbox_exec" {
			c.checkSchema(tool.InputSchema)
		}
	}
	if slices.Sort(names); !slices.Equal(names, mcpTools) {
		c.place.t.Errorf("tools %q", names)
	}
}

// checkSchema compares the schema of exec with that of Atoll's own tool.
func (c *mcpClient) checkSchema(schema any) {
	c.place.t.Helper()
	var own struct {
		Tools []struct {
			Name   string
			Schema any
		}
	}
	out, _ := c.place.must("", "tool", "list", "--json")
	if err := json.Unmarshal([]byte(out), &own); err != nil {
		c.place.t.Fatal(err)
	}
	for _, tool := range own.Tools {
		if tool.Name == "exec" && !reflect.DeepEqual(tool.Schema, schema) {
			c.place.t.Errorf("the schema of exec is %v, want %v", schema, tool.Schema)
		}
	}
}

// checkCancel cancels a call, whose command ends.
func (c *mcpClient) checkCancel() {
	c.place.t.Helper()
	ctx, cancel := context.WithCancel(c.place.t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.call(ctx, "sandbox_exec", arguments{"command": "echo $$ >/tmp/pid; exec sleep 1000"})
		ended <- err
	}()
	c.must("", "sandbox_exec", arguments{"command": "until test -s /tmp/pid; do sleep 0.02; done", "timeout": 20})
	cancel()
	if err := <-ended; err == nil {
		c.place.t.Error("the cancelled call succeeded")
	}
	c.must("gone", "sandbox_exec", arguments{"command": "while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.02; done; echo gone", "timeout": 20})
}

// checkLong makes a call that takes long, which the client is told.
func (c *mcpClient) checkLong() {
	c.place.t.Helper()
	c.must("done", "sandbox_exec", arguments{"command": "sleep 2.3; echo done"})
	if c.progress.Load() == 0 {
		c.place.t.Error("no progress was told")
	}
}

// checkDestroy removes the sandbox, which the person is asked.
func (c *mcpClient) checkDestroy() {
	c.place.t.Helper()
	c.refused("did not agree", "sandbox_destroy", arguments{})
	c.must("made by a client", "sandbox_exec", arguments{"command": "cat made.txt; echo left >/tmp/left"})
	c.answer.Store(true)
	c.must("removed: ", "sandbox_destroy", arguments{})
	if c.asked.Load() != 2 {
		c.place.t.Errorf("the person was asked %d times", c.asked.Load())
	}
	c.must("made by a client\ngone", "sandbox_exec", arguments{"command": "cat made.txt; test -e /tmp/left || echo gone"})
	c.must("stopped: ", "sandbox_down", arguments{})
	c.must("made by a client", "sandbox_exec", arguments{"command": "cat made.txt"})
}

// mcpProcess is a server whose streams a test has itself.
type mcpProcess struct {
	*exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said bytes.Buffer
}

func startMCP(p *agentPlace, name string, args ...string) *mcpProcess {
	p.t.Helper()
	m := &mcpProcess{Cmd: exec.CommandContext(p.t.Context(), name, args...)}
	m.Dir, m.Env, m.Stderr, m.WaitDelay = p.repository, p.env, &m.said, time.Second
	in, err := m.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := m.StdoutPipe()
	if err == nil {
		err = m.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	m.in, m.out = in, bufio.NewReaderSize(out, 1<<20)
	return m
}

const mcpHello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// read returns the next message; every line is one.
func (m *mcpProcess) read(t *testing.T) (message struct {
	ID     any
	Method string
	Result json.RawMessage
	Error  json.RawMessage
}) {
	t.Helper()
	line, err := m.out.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &message)
	}
	if err != nil {
		t.Fatalf("%v: %q\n%s", err, line, m.said.String())
	}
	return message
}

// rest is what comes before the end of the output, which must come soon.
func (m *mcpProcess) rest(t *testing.T) string {
	t.Helper()
	overdue := time.AfterFunc(20*time.Second, func() { _ = m.Process.Kill(); t.Error("the server does not end") })
	defer overdue.Stop()
	text, _ := io.ReadAll(m.out)
	return string(text)
}

// What is no message, and more of them than can be served, ends a server or is refused.
func TestMCPHostile(t *testing.T) {
	t.Parallel()
	p := newAgentPlace(t, 3)
	for name, text := range map[string]string{
		"no JSON": "GET / HTTP/1.1\r\n\r\n", "no message": "[1,2]\n", "too long": `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 17<<20),
	} {
		m := startMCP(p, "atoll", "mcp")
		_, _ = io.WriteString(m.in, text) // it may be over already
		if out := m.rest(t); out != "" && !strings.HasPrefix(out, `{"jsonrpc":`) {
			t.Errorf("%s: %q", name, out)
		}
		if err := m.Wait(); err == nil || !strings.Contains(m.said.String(), "hint: ") {
			t.Errorf("%s: %v\n%s", name, err, m.said.String())
		}
	}
	m := startMCP(p, "atoll", "mcp")
	const calls = 2000
	go func() {
		_, _ = io.WriteString(m.in, mcpHello)
		for i := range calls {
			fmt.Fprintf(m.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"sandbox_status","arguments":{}}}`+"\n", i)
		}
	}()
	seen := map[any]bool{}
	for range calls + 1 {
		seen[m.read(t).ID] = true
	}
	if len(seen) != calls+1 {
		t.Errorf("%d answers", len(seen))
	}
	_ = m.in.Close()
	if out := m.rest(t); out != "" {
		t.Errorf("after the end: %q", out)
	}
	if err := m.Wait(); err != nil {
		t.Errorf("%v\n%s", err, m.said.String())
	}
}

// A client that is killed leaves nothing, also if another process holds its pipes open.
func TestMCPKilledClient(t *testing.T) {
	t.Parallel()
	p := newAgentPlace(t, 3)
	m := startMCP(p, "sh", "-c", "atoll mcp; exit 0")
	_, _ = io.WriteString(m.in, mcpHello+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sandbox_exec","arguments":{"command":"exec sleep 1000","background":true}}}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sandbox_exec","arguments":{"command":"echo >/tmp/begun; exec sleep 1000"}}}`+"\n"+
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"sandbox_exec","arguments":{"command":"until test -e /tmp/begun; do sleep 0.02; done"}}}`+"\n")
	for range 3 { // hello, 1 and 3
		if m := m.read(t); m.Error != nil {
			t.Fatalf("%s", m.Error)
		}
	}
	if err := m.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	m.rest(t)
	_ = m.Wait() // it was killed
	if out, _ := p.must("", "ps", "--json"); strings.Contains(out, `"running": true`) {
		t.Errorf("the sandbox runs on:\n%s", out)
	}
}

// Servers of others work in a sandbox, and end with their client.
func TestMCPWrap(t *testing.T) {
	t.Parallel()
	p := newAgentPlace(t, 3)
	m := startMCP(p, "atoll", "mcp", "wrap", "--", "sh", "-c", `trap "" TERM; sleep 1000 & while read -r line; do echo "$line" from "$(pwd)"; done; sleep 1000`)
	_, _ = io.WriteString(m.in, "{}\n")
	if line, err := m.out.ReadString('\n'); err != nil || line != "{} from /workspace\n" {
		t.Errorf("%q, %v\n%s", line, err, m.said.String())
	}
	_ = m.in.Close()
	if out := m.rest(t); out != "" {
		t.Errorf("%q", out)
	}
	if err := m.Wait(); err != nil {
		t.Errorf("%v\n%s", err, m.said.String())
	}
	out, _ := p.must("", "run", "--", "sh", "-c", `cat /proc/[0-9]*/cmdline | tr '\0' ' '`)
	if strings.Contains(out, "sleep 1000") {
		t.Errorf("it left %q", out)
	}
}
