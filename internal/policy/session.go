package policy

import "strings"

const (
	defaultAgent   = "main"
	defaultMainKey = "main"
	globalKey      = "global"

	agentPrefix   = "agent:"
	accountPrefix = "account:"

	maxAgentID = 64
)

// Sessions are the settings by which session keys are understood.
type Sessions struct {
	DefaultAgent string // the agent of keys that name none; "" means main
	MainKey      string // session.mainKey; "" means main
	Global       bool   // session.scope is "global": the main session has the key "global"
}

// SessionKey is what a session key says.
type SessionKey struct {
	AgentID string
	Key     string // canonical form
	MainKey string // canonical key of the agent's main session
	Main    bool

	own string // the key below its agent, also for the global session
}

// Parse understands a session key. It accepts everything: a key that names no
// agent belongs to the default agent, and an empty key is its main session.
func (s Sessions) Parse(key string) SessionKey {
	key = trim(key)
	agent, rest, named := splitAgentKey(key)
	if !named {
		agent, rest = NormalizeAgentID(s.DefaultAgent), key
	}
	mainKey := s.mainKey()
	parsed := SessionKey{
		AgentID: agent,
		MainKey: agentPrefix + agent + ":" + mainKey,
		Main:    rest == "" || rest == defaultMainKey || rest == mainKey || s.Global && key == globalKey,
	}
	parsed.own = parsed.MainKey
	if s.Global {
		parsed.MainKey = globalKey
	}
	switch {
	case parsed.Main:
		parsed.Key = parsed.MainKey
	case named || mustExpand(key):
		parsed.own = agentPrefix + agent + ":" + rest
		parsed.Key = parsed.own
	default:
		parsed.Key, parsed.own = key, key
	}
	return parsed
}

func (s Sessions) mainKey() string {
	if key := strings.ToLower(trim(s.MainKey)); key != "" {
		return key
	}
	return defaultMainKey
}

// mustExpand tells whether a key that names no agent gets its agent's prefix:
// a bare word does; so does what would otherwise pass for a scope key of
// another agent or account.
func mustExpand(key string) bool {
	return !strings.Contains(key, ":") ||
		strings.HasPrefix(key, agentPrefix) ||
		strings.HasPrefix(key, accountPrefix)
}

// splitAgentKey takes "agent:<id>:<rest>" apart.
func splitAgentKey(key string) (agent, rest string, ok bool) {
	body, ok := strings.CutPrefix(key, agentPrefix)
	if !ok {
		return "", "", false
	}
	agent, rest, ok = strings.Cut(body, ":")
	if !ok || trim(agent) == "" || trim(rest) == "" {
		return "", "", false
	}
	return NormalizeAgentID(agent), rest, true
}

// NormalizeAgentID turns any text into an agent id: lower case, letters,
// digits, "_" and "-", at most 64 bytes; "main" if nothing remains.
func NormalizeAgentID(id string) string {
	id = lower(trim(id))
	id = strings.Trim(replaceRuns(id, isAgentIDByte), "-")
	id = strings.TrimRight(id[:min(len(id), maxAgentID)], "-")
	if id == "" {
		return defaultAgent
	}
	return id
}

func isAgentIDByte(c byte) bool {
	return isLowerAlnum(c) || c == '_' || c == '-'
}
