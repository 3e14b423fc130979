package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

const (
	// fullAt is how much of a context window is used before the conversation is
	// made shorter, in hundredths.
	fullAt = 80
	// keepAt is how much of it the messages that stay whole may fill.
	keepAt = 40
	// bytesPerToken turns text into tokens, roughly and rather too many.
	bytesPerToken = 3
	// perMessage is what a message costs beside its text.
	perMessage = 16
	// unknownWindow bounds, in tokens, a conversation with a model whose window
	// is unknown: about 1.5 MB that every task of its session has in memory.
	unknownWindow = 500_000
	// noteLine bounds what is left of one message.
	noteLine = 300
	// noteLines bounds what is left of all of them.
	noteLines = 200
)

// compactIfFull makes the conversation shorter when it fills the model's window, and
// fails when it cannot be made short enough.
func (r *run) compactIfFull(m *Model) error {
	window := cmp.Or(m.ContextWindow, unknownWindow)
	messages := r.Transcript.Messages()
	needs := r.fixedTokens() + estimate(messages)
	if needs*100 <= window*fullAt {
		return nil
	}
	done, err := r.compact(messages, window*keepAt/100, window)
	if err != nil || done || m.ContextWindow == 0 {
		return err
	}
	return &Error{Code: CodeOverflow, Text: fmt.Sprintf("the conversation needs about %d tokens, and %s has %d", needs, m.Name, m.ContextWindow)}
}

// compactAfterRefusal makes a conversation shorter that a model has refused for its length,
// whatever we thought of it. It reports whether that was possible.
func (r *run) compactAfterRefusal() (bool, error) {
	messages := r.Transcript.Messages()
	size := estimate(messages)
	return r.compact(messages, size/2, r.fixedTokens()+size-1)
}

// compact replaces all messages but the last ones, which fill the room, by a
// list. It reports false, and changes nothing, if that needs more than most.
func (r *run) compact(messages []chat.Message, room, most int64) (bool, error) {
	kept := lastThatFit(messages, room)
	note := digest(messages[:len(messages)-kept])
	after := r.fixedTokens() + estimate(messages[len(messages)-kept:]) + estimate([]chat.Message{note})
	if kept == len(messages) || after > most {
		return false, nil
	}
	r.emit(Event{Type: Notice, Text: fmt.Sprintf("the conversation was shortened: %d of %d messages stay", kept, len(messages))})
	return true, r.Transcript.write(&entry{Type: "compaction", Kept: kept, Replaces: &note, Estimated: after})
}

// Compact makes a conversation about half as long, outside of a run. It tells how
// many messages there were, and how many there are.
func (t *Transcript) Compact() (before, after int, err error) {
	if err := t.closeOpenCalls(); err != nil {
		return 0, 0, err
	}
	messages := t.Messages()
	size := estimate(messages)
	kept := lastThatFit(messages, size/2)
	note := digest(messages[:len(messages)-kept])
	estimated := estimate(messages[len(messages)-kept:]) + estimate([]chat.Message{note})
	if kept == len(messages) || estimated >= size {
		return len(messages), len(messages), nil
	}
	err = t.write(&entry{Type: "compaction", Kept: kept, Replaces: &note, Estimated: estimated})
	return len(messages), kept + 1, err
}

// fixedTokens is what every request costs, whatever was said.
func (r *run) fixedTokens() int64 {
	size := len(r.System)
	for _, f := range r.Tools.Functions() {
		size += len(f.Name) + len(f.Description) + len(f.Schema)
	}
	return int64(size) / bytesPerToken
}

func estimate(messages []chat.Message) (tokens int64) {
	for i := range messages {
		size := len(messages[i].Text)
		for _, c := range messages[i].Calls {
			size += len(c.Name) + len(c.Args)
		}
		tokens += int64(size)/bytesPerToken + perMessage + int64(len(messages[i].Images))*imageTokens
	}
	return tokens
}

// lastThatFit is how many of the last messages stay: as many as there is room for,
// never a result without its call, and at least the last exchange.
func lastThatFit(messages []chat.Message, room int64) int {
	kept := len(messages)
	for i := range slices.Backward(messages) {
		room -= estimate(messages[i : i+1])
		if room < 0 && kept < len(messages) {
			break
		}
		if messages[i].Role != chat.Tool {
			kept = i
		}
	}
	return len(messages) - kept
}

// digest is one message that stands for many.
func digest(messages []chat.Message) chat.Message {
	lines := []string{"Earlier parts of this conversation were shortened to this list, oldest first:"}
	for i := range messages {
		lines = append(lines, summaryLines(&messages[i])...)
	}
	if over := len(lines) - noteLines; over > 0 {
		lines = append(lines[:2], append([]string{fmt.Sprintf("… %d entries left out …", over)}, lines[2+over:]...)...)
	}
	return chat.Message{Role: chat.User, Text: strings.Join(lines, "\n")}
}

func summaryLines(m *chat.Message) (lines []string) {
	if m.Text != "" {
		name := string(m.Role)
		if m.Role == chat.Tool {
			name = "result"
		}
		lines = append(lines, "- "+name+": "+shorten(m.Text))
	}
	for _, c := range m.Calls {
		lines = append(lines, fmt.Sprintf("- called %s %s", c.Name, shorten(c.Args)))
	}
	return lines
}

func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > noteLine {
		return string(r[:noteLine]) + "…"
	}
	return s
}
