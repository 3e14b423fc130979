package rewrite

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The lengths of a message.
const (
	maxSubject = 200     // characters
	maxBody    = 8 << 10 // bytes
	maxName    = 100     // characters of a person's name or address
)

// messageRule is one thing that is done to a message, and why.
type messageRule struct {
	why   string
	apply func(string) string
}

// messageRules are applied in this order. They are made when a message is first
// written, which most programs never do.
var messageRules = sync.OnceValue(func() []messageRule {
	var (
		spoofed  = regexp.MustCompile(`(?im)^[ \t]*(co-authored-by|signed-off-by|(reviewed|acked|tested|reported|approved|suggested|committed)-by|agent-(author|commit)|skip-checks|change-id|cc)[ \t]*:.*(\n|$)`)
		closing  = regexp.MustCompile(`(?i)\b((?:close|fix|resolve|implement)(?:s|es|d|ed|ing)?\b[:\s]+)(\S*?)(?:#|/issues/|/pull/|gh-)(\d+)`)
		skipping = regexp.MustCompile(`(?i)\[(\s*(?:skip|no)[ -]?(?:ci|actions|build)|\s*(?:ci|actions)[ -]skip)(\s*)\]|\*\*\*no_ci\*\*\*`)
		mention  = regexp.MustCompile(`(^|[^\w` + "`" + `])@([a-zA-Z0-9])`)
		quoted   = regexp.MustCompile(`(?m)^(diff |---|\+\+\+ |Index: |From |@@ )`)
		blank    = regexp.MustCompile(`\n{3,}`)
	)
	return []messageRule{
		{"what is not text is not shown", withoutControls},
		{"nobody else signed this", func(m string) string { return spoofed.ReplaceAllString(m, "") }},
		{"closing an issue is a person's decision", func(m string) string { return closing.ReplaceAllString(m, "${1}${2} no. ${3}") }},
		{"checks are not skipped", func(m string) string { return skipping.ReplaceAllString(m, "($1)") }},
		{"nobody is called", func(m string) string { return mention.ReplaceAllString(m, "$1$2") }},
		{"text that looks like a patch stays text", func(m string) string { return quoted.ReplaceAllString(m, " $1") }},
		{"lines that were taken out leave no hole", func(m string) string { return blank.ReplaceAllString(m, "\n\n") }},
		{"a message is read by people", shorten},
	}
})

// Message removes from a commit message everything that programs act upon.
func Message(text string) string {
	for _, c := range messageRules() {
		text = strings.TrimSpace(c.apply(text))
	}
	if text == "" {
		return "(no message)"
	}
	return text
}

// withoutControls leaves out what terminals and web pages act upon and people do not see.
func withoutControls(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), string(utf8.RuneError))
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) {
			return -1
		}
		return r
	}, text))
}

func shorten(text string) string {
	subject, body, _ := strings.Cut(text, "\n")
	if runes := []rune(subject); len(runes) > maxSubject {
		subject = string(runes[:maxSubject]) + "…"
	}
	if len(body) > maxBody {
		body = strings.ToValidUTF8(body[:maxBody], "") + "\n[…]"
	}
	return strings.TrimSpace(subject) + "\n" + body
}

// Block is foreign text as a Markdown code block: nothing in it is rendered, and
// it cannot end the block.
func Block(language, text string) string {
	text = withoutControls(text)
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// singleLine is a name or an address in one short line that cannot end the field it
// stands in.
func singleLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune("<>\n\t", r) {
			return ' '
		}
		return r
	}, withoutControls(text))
	if runes := []rune(text); len(runes) > maxName {
		text = string(runes[:maxName])
	}
	if text = strings.TrimSpace(text); text == "" {
		return "unknown"
	}
	return text
}
