package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/envelope"
)

// The names of the event streams of known programs: JSON objects on standard
// output, one a line.
const (
	claudeStream   = "claude"   // claude --output-format stream-json
	codexStream    = "codex"    // codex exec --json
	opencodeStream = "opencode" // opencode run --format json
	geminiStream   = "gemini"   // gemini --output-format stream-json
)

// maxLineEvents bounds the events of one line.
const maxLineEvents = 64

// streamReader returns the events of one line. A line that cannot be read has none.
type streamReader func(line []byte) []Event

// streamReaders are the readers of the known streams, by name.
func streamReaders() map[string]streamReader {
	return map[string]streamReader{
		claudeStream: claudeEvents, codexStream: codexEvents, opencodeStream: opencodeEvents, geminiStream: geminiEvents,
	}
}

// streamReaderOf returns the reader of a stream; nil for "".
func streamReaderOf(name string) (streamReader, error) {
	all := streamReaders()
	read, ok := all[name]
	if !ok && name != "" {
		return nil, fmt.Errorf("there is no event stream %q; known: %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	return read, nil
}

// answerReaders update the answer from one line of a stream, by the name in
// Custom.Read. Claude Code needs none: its last line is the answer.
func answerReaders() map[string]func(*streamAnswer, []byte) {
	return map[string]func(*streamAnswer, []byte){
		codexStream: (*streamAnswer).codex, opencodeStream: (*streamAnswer).opencode, geminiStream: (*streamAnswer).gemini,
	}
}

// streamAnswer is the answer that the lines of a stream have given so far.
type streamAnswer struct {
	text    strings.Builder
	failure string
	message string // id of the message that text belongs to, where the stream has one
	known   bool   // a line was of the stream
}

// readStream finds the answer in the lines of a stream. Output without such lines
// is the answer itself.
func (c Custom) readStream(stdout []byte, line func(*streamAnswer, []byte)) (*envelope.Envelope, error) {
	var a streamAnswer
	for text := range strings.Lines(string(stdout)) {
		line(&a, []byte(text))
	}
	if !a.known {
		return c.readText(stdout)
	}
	if a.failure == "" && a.text.Len() == 0 {
		return nil, envelope.ErrNone
	}
	e := answerOf(a.text.String())
	if a.failure != "" {
		e.Meta.Error = &envelope.Error{Kind: "agent_error", Message: a.failure}
	}
	return e, nil
}

// begin replaces the text, and takes a failure back that came before it.
func (a *streamAnswer) begin(text string) {
	a.failure = ""
	a.text.Reset()
	a.text.WriteString(text)
}

// decodeLine decodes a line that is an object of the stream; false if it is not.
func decodeLine(line []byte, into any) bool {
	return len(line) > 0 && line[0] == '{' && json.Unmarshal(line, into) == nil
}

// said returns the event of words of the agent, ended like a paragraph.
func said(text string) Event { return Event{Type: "text_delta", Text: text + "\n"} }

// used returns the event of tokens, and of the US dollars that the program says
// they cost.
func used(u chat.Usage, dollars float64) Event {
	return Event{Type: eventUsage, Usage: &u, MicroUSD: int64(min(max(dollars, 0), maxDollars) * 1e6)}
}

// logged returns the event of a message that is not part of the answer.
func logged(text string) Event { return Event{Type: eventLog, Text: cutTo(text, maxLogged)} }
