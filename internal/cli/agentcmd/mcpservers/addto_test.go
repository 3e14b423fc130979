package mcpservers

import "testing"

// Servers are a member of a JSON object, or tables after other text.
func TestAddTo(t *testing.T) {
	const servers = `{"mcpServers":{"a":{"command":"x"}}}`
	for content, want := range map[string]string{
		`{}`: servers, "{\n  \"a\": 1\n}\n": "{\n  \"a\": 1\n,\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
	} {
		if got := string(AddTo([]byte(content), []byte(servers), true)); got != want {
			t.Errorf("%s: %s", content, got)
		}
		if got := string(AddTo([]byte(content), nil, true)); got != content {
			t.Errorf("%s without servers: %s", content, got)
		}
	}
	if got := string(AddTo([]byte("a = 1\n"), []byte("[mcp_servers.a]\n"), false)); got != "a = 1\n[mcp_servers.a]\n" {
		t.Error(got)
	}
}
