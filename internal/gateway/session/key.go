package session

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
)

// MaxKey bounds a key, in bytes. Keys are used in headers and file names.
const MaxKey = 256

// Key is a session key in its canonical form:
//
//	agent:<agent>:<account>:<run>   of a billing account; written as it is
//	agent:<agent>:<rest>            everything else; in lower case
//	global                          the one session that all share, if configured so
type Key struct {
	Text    string
	Agent   string
	Account string // "" if the key names none
}

const (
	agentPrefix = "agent:"
	globalKey   = "global"
)

// notAccounts are words that OpenClaw puts at the beginning of the rest of a key.
// They are not accounts: the caller's View decides whose session that is.
var notAccounts = []string{
	"acp", "channel", "cron", "dashboard", "direct", "discord", "dm", "explicit", "global", "googlechat", "group", "heartbeat", "hook",
	"imessage", "irc", "line", "main", "matrix", "msteams", "node", "signal", "slack", "subagent", "telegram", "thread", "tui", "unknown",
	"webchat", "whatsapp",
}

// ParseKey parses a key as OpenClaw does: without an agent it belongs to the
// default one, and "main" or nothing is the main session.
func ParseKey(text, defaultAgent string) (Key, error) {
	return parseKey(text, policy.Sessions{DefaultAgent: defaultAgent})
}

func parseKey(text string, names policy.Sessions) (Key, error) {
	text = strings.TrimSpace(text)
	if err := checkKey(text); err != nil {
		return Key{}, err
	}
	if lower := strings.ToLower(text); lower == globalKey || lower == "main" {
		text = lower
	}
	if text == globalKey {
		return Key{Text: globalKey, Agent: policy.NormalizeAgentID(names.DefaultAgent)}, nil
	}
	agent, rest, err := splitKey(text, names)
	if err != nil {
		return Key{}, err
	}
	key := Key{Agent: agent}
	if key.Account, err = accountOf(rest); err != nil {
		return Key{}, err
	}
	if key.Account == "" {
		rest = strings.ToLower(rest)
	}
	key.Text = agentPrefix + agent + ":" + rest
	if main := names.Parse(key.Text); main.Main {
		key.Text = main.Key
	}
	return key, checkKey(key.Text)
}

// splitKey separates the agent from the rest of a key.
func splitKey(text string, names policy.Sessions) (agent, rest string, err error) {
	body, named := cutPrefixFold(text, agentPrefix)
	if !named {
		if text == "" {
			text = "main"
		}
		return policy.NormalizeAgentID(names.DefaultAgent), text, nil
	}
	agent, rest, ok := strings.Cut(body, ":")
	if !ok || agent == "" || rest == "" {
		return "", "", badKey(text, "it is malformed")
	}
	return policy.NormalizeAgentID(agent), rest, nil
}

// accountOf returns the account in the rest of a key.
func accountOf(rest string) (string, error) {
	parts := strings.Split(rest, ":")
	switch first := parts[0]; {
	case slices.Contains(parts, ""):
		return "", badKey(rest, "a part of it is empty")
	case first == "agent" || first == "account":
		return "", badKey(rest, "it is malformed")
	case len(parts) == 1 || slices.Contains(notAccounts, strings.ToLower(first)):
		return "", nil
	case !isAccount(first):
		return "", badKey(rest, "its account cannot be sent in a header")
	default:
		return first, nil
	}
}

// isAccount reports whether a name can be a billing account within a key.
func isAccount(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"\,`, c) })
}

func checkKey(text string) error {
	switch {
	case len(text) > MaxKey:
		return badKey(text[:32]+"…", fmt.Sprintf("it has %d bytes, more than %d", len(text), MaxKey))
	case !utf8.ValidString(text):
		return badKey(text, "it is not UTF-8")
	case strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) || c == utf8.RuneError }):
		return badKey(text, "it has spaces or characters that cannot be seen")
	}
	return nil
}

func badKey(text, why string) error {
	return errhint.With(fmt.Errorf("%w: session key %q: %s", ErrInvalid, text, why), "write agent:<agent>:<account>:<run>, agent:<agent>:<name>, or main")
}

func cutPrefixFold(s, lower string) (string, bool) {
	if len(s) < len(lower) || !strings.EqualFold(s[:len(lower)], lower) {
		return s, false
	}
	return s[len(lower):], true
}
