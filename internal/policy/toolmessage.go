package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
)

// Blocked describes a call that the tool policy refused.
type Blocked struct {
	Tool     string
	Mode     config.Mode
	Session  SessionKey
	Decision Decision
}

// Message returns what the caller of the tool is shown: the decision and the setting
// that would change it. The session key is shortened: it may name a person.
func (b Blocked) Message() string {
	lines := []string{
		fmt.Sprintf("Tool %q blocked by sandbox tool policy (mode=%s).", NormalizeTool(b.Tool), b.Mode),
		"Session: " + redactKey(b.Session.Key),
		"Reason: " + b.Decision.Reason,
		"Fix:",
		"- agents.defaults.sandbox.mode=off (disable sandbox)",
	}
	for _, fix := range b.Decision.Fix {
		lines = append(lines, "- "+fix)
	}
	if b.Mode == config.ModeNonMain {
		lines = append(lines, "- Use main session key (direct): "+escapeControls(b.Session.MainKey))
	}
	return strings.Join(append(lines, "- See: "+b.explainCommand()), "\n")
}

func (b Blocked) explainCommand() string {
	command := "atoll sandbox explain --agent " + b.Session.AgentID
	if hasControl(b.Session.Key) {
		return command // it could not be typed
	}
	return command + " --session " + shellQuote(b.Session.Key) + " --tool " + shellQuote(NormalizeTool(b.Tool))
}

// redactKey keeps the ends of a key, enough to recognise one's own.
func redactKey(key string) string {
	const ends = 6
	runes := []rune(key)
	if len(runes) <= 2*ends {
		return "(redacted)"
	}
	return escapeControls(string(runes[:ends])) + "…" + escapeControls(string(runes[len(runes)-ends:]))
}

// escapeControls shows control characters instead of sending them to a terminal.
func escapeControls(s string) string {
	if !hasControl(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// shellQuote writes text so that a POSIX shell reads it as one word.
func shellQuote(s string) string {
	plain := s != ""
	for i := range len(s) {
		plain = plain && (isAlnum(s[i]) || strings.IndexByte("_-.:/@%+=,", s[i]) >= 0)
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
