package run

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/envelope"
)

// AgentOptions say where our own agent's program is on the host.
type AgentOptions struct {
	Program string
	Image   string // "" is the installation's default
}

// Where things are inside a sandbox that runs our own agent.
const (
	agentProgram  = "/opt/atoll/atoll"
	messagesFile  = ".cogni/messages.json"
	agentConfig   = ".cogni/atoll.json5"
	agentState    = ".atoll"
	modelProvider = "cogni"
	// vectorProvider is the same proxy, in the one protocol that has vectors.
	vectorProvider = "vectors"
	// noKey stands where a key would: the proxy adds the real one, which never
	// enters a sandbox.
	noKey = "proxy-handles-auth"
	// modelURL is where programs in a sandbox find models while a grant is open.
	modelURL = "http://127.0.0.1:8080"
)

// Agent is our own agent, inside: its loop, its tools and its state are all in
// the sandbox, which has neither a key nor a file of the host's.
func Agent(o AgentOptions) Variant {
	return Variant{
		ID: "sandbox:agent", Name: "Atoll's agent", Description: "Atoll's own agent, whole in a sandbox of its own, for one task",
		Image: o.Image, Timeout: 120 * time.Second, Margin: 10 * time.Second, Memory: 512 << 20,
		Mounts: []Mount{{o.Program, agentProgram}}, OnDirectory: true,
		Argv: agentArgv, Env: agentEnv, Files: agentFiles, Read: envelope.Parse, Event: agentEvent, UsesEmbeddings: true,
	}
}

func agentArgv(j *Job) ([]string, error) {
	return []string{
		agentProgram, "agent", "--local", "--json", "--events", "--session-id", j.ID, "--run-id", j.ID,
		"--messages", j.Home + "/" + messagesFile, "--timeout", strconv.Itoa(max(int(j.Inner/time.Second), 1)),
	}, nil
}

func agentEnv(j *Job) map[string]string {
	return map[string]string{
		"HOME": j.Home, "ATOLL_CONFIG": j.Home + "/" + agentConfig, "ATOLL_STATE_DIR": j.Home + "/" + agentState,
	}
}

func agentFiles(j *Job) ([]File, error) {
	messages, err := json.Marshal(j.Messages, jsontext.WithIndent("  "))
	if err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	config, err := json.Marshal(agentConfigOf(j), jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return []File{{Path: messagesFile, Mode: 0o600, Data: messages}, {Path: agentConfig, Mode: 0o600, Data: config}}, nil
}

// object is a JSON object to be written.
type object = map[string]any

// agentConfigOf has tools work in the sandbox itself, without those that need a
// network, and one model provider: the proxy.
func agentConfigOf(j *Job) any {
	model := object{"id": j.Model, "name": j.Model}
	if j.Window > 0 {
		model["contextWindow"] = j.Window
	}
	if j.MaxTokens > 0 {
		model["maxTokens"] = j.MaxTokens
	}
	providers := object{modelProvider: theProxy(cmp.Or(j.API, chat.APICompletions), model)}
	config := object{
		"agents": object{"defaults": object{"workspace": j.Workspace, "model": modelProvider + "/" + j.Model, "sandbox": object{"mode": "off"}}},
		"tools":  object{"host": true, "deny": []string{"group:web"}},
		"models": object{"mode": "replace", "providers": providers},
	}
	if j.Embeddings != "" {
		providers[vectorProvider] = theProxy(chat.APICompletions, object{"id": j.Embeddings, "name": j.Embeddings})
		config["llm"] = object{"embeddings": vectorProvider + "/" + j.Embeddings}
	}
	return config
}

// theProxy is the proxy as the provider of one model.
func theProxy(api string, model object) object {
	return object{"baseUrl": modelURL + "/v1", "apiKey": noKey, "api": api, "models": []object{model}}
}

// agentEvent reads a line as atoll agent --events prints them.
func agentEvent(line []byte) (e Event, ok bool) {
	if len(line) == 0 || line[0] != '{' {
		return e, false
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, false
	}
	return e, true
}
