package fakellm_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/fakellm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T, network, address string, script fakellm.Script) *fakellm.Server {
	t.Helper()
	server, err := fakellm.Listen(t.Context(), network, address, script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// post sends a conversation and returns status and answer.
func post(t *testing.T, client *http.Client, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(bytes.TrimSpace(text))
}

func tcpClient(t *testing.T) *http.Client {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func TestStreamsWordsCallsAndUsage(t *testing.T) {
	server := listen(t, "tcp", "127.0.0.1:0", fakellm.Script{{Text: "Grüße", Calls: []fakellm.Call{{Name: "exec", Arguments: `{"command":"ls"}`}}, Usage: fakellm.Usage{Prompt: 7, Completion: 5}}})
	status, got := post(t, tcpClient(t), server.BaseURL(),
		`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`)
	const head = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[`
	want := head + `{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"content":"Gr"},"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"content":"üß"},"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"content":"e"},"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1_1","type":"function","function":{"name":"exec","arguments":""}}]},"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"comm"}}]},"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"and\":\""}}]},"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ls\"}"}}]},"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n" +
		head + `],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":0}}}` + "\n\n" +
		"data: [DONE]"
	if diff := cmp.Diff(want, got); status != http.StatusOK || diff != "" {
		t.Errorf("status %d (-want +got):\n%s", status, diff)
	}
}

func TestAnswersWholeOverAUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "model")
	listen(t, "unix", socket, fakellm.Script{fakellm.Say("hello")})
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	t.Cleanup(client.CloseIdleConnections)
	_, got := post(t, client, "http://model/v1", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`)
	if !strings.Contains(got, `"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"`) {
		t.Errorf("answer %s", got)
	}
}

func TestBranchesOnTheLastResult(t *testing.T) {
	other := fakellm.Say("it failed")
	script := fakellm.Script{fakellm.Use("exec", "{}"), {Text: "it worked", When: "exit 0", Else: &other}}
	server := listen(t, "tcp", "127.0.0.1:0", script)
	for result, want := range map[string]string{"exit 0": "it worked", "exit 1": "it failed"} {
		_, got := post(t, tcpClient(t), server.BaseURL(),
			`{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null},{"role":"tool","content":"`+result+`"}]}`)
		if !strings.Contains(got, want) {
			t.Errorf("after %q: %s, want %q", result, got, want)
		}
	}
	if len(server.Requests()) != 2 || server.Err() != nil {
		t.Errorf("%d requests recorded, want 2; %v", len(server.Requests()), server.Err())
	}
}

func TestSaysWhereTheScriptDoesNotFit(t *testing.T) {
	server := listen(t, "tcp", "127.0.0.1:0", fakellm.Script{{Text: "x", When: "secret word"}, {Status: 429, Text: "slow down"}})
	client := tcpClient(t)
	status, got := post(t, client, server.BaseURL(), `{"messages":[{"role":"user","content":"hi"}]}`)
	if status != http.StatusBadRequest || !strings.Contains(got, "secret word") || server.Err() == nil {
		t.Errorf("status %d, %s", status, got)
	}
	status, got = post(t, client, server.BaseURL(), `{"messages":[{"role":"assistant","content":"hi"}]}`)
	if status != http.StatusTooManyRequests || !strings.Contains(got, "slow down") {
		t.Errorf("status %d, %s", status, got)
	}
	status, got = post(t, client, server.BaseURL(), `{"messages":[{"role":"assistant"},{"role":"assistant"}]}`)
	if status != http.StatusBadRequest || !strings.Contains(got, "the script is over") {
		t.Errorf("status %d, %s", status, got)
	}
}
