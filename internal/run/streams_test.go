package run

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/envelope"
)

var update = flag.Bool("update", false, "write the golden files anew")

// eventWords returns events in words, one a line.
func eventWords(events []Event) string {
	var all strings.Builder
	for _, e := range events {
		all.WriteString(e.Type)
		if e.Call != nil {
			fmt.Fprintf(&all, " %s %s", e.Call.Name, e.Call.Args)
		}
		if e.IsError {
			all.WriteString(" failed")
		}
		if u := e.Usage; u != nil {
			fmt.Fprintf(&all, " %d in, %d out, %d and %d cached, %d micro-dollars", u.Input, u.Output, u.CacheRead, u.CacheWrite, e.MicroUSD)
		}
		fmt.Fprintf(&all, " %q\n", e.Text)
	}
	return all.String()
}

// readWhole returns the events of a program's standard output.
func readWhole(t *testing.T, stream string, stdout []byte) (events []Event) {
	t.Helper()
	r, err := NewEventReader(stream, func(e Event) { events = append(events, e) })
	if err != nil {
		t.Fatal(err)
	}
	for len(stdout) > 0 { // lines arrive in pieces
		n := min(len(stdout), 100)
		_, _ = r.Stdout().Write(stdout[:n])
		stdout = stdout[n:]
	}
	r.Flush()
	return events
}

// The files in testdata/streams are what the programs printed: Claude Code 2.1.325,
// Codex 0.166.0, OpenCode 1.18.33 and Gemini CLI 0.61.0, with a scripted model that
// has them make a file, fail, and answer.
func TestStreamsOfPrograms(t *testing.T) {
	for stream := range streamReaders() {
		stdout, err := os.ReadFile(filepath.Join("testdata", "streams", stream+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		golden, got := filepath.Join("testdata", "streams", stream+".golden"), eventWords(readWhole(t, stream, stdout))
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", stream, err, got, want)
		}
		if e, err := (Custom{}).WithStream(stream).Variant().Read(stdout); err != nil || e.Meta.Error != nil || e.Text() != "it is made" {
			t.Errorf("%s: answer %+v, %v", stream, e, err)
		}
	}
}

// Parts of streams that the recorded ones do not have.
func TestStreamLines(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		lines  []string
		want   string
	}{
		"parts of a result": {claudeStream, []string{
			`{"type":"user","message":{"content":[{"tool_use_id":"t2","type":"tool_result","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}}`,
		}, `tool_result   "a\nb"`},
		"cached tokens": {claudeStream, []string{`{"type":"result","usage":{"input_tokens":1,"cache_read_input_tokens":20,"cache_creation_input_tokens":300,"output_tokens":4},"total_cost_usd":0.5}`},
			`usage_report 321 in, 4 out, 20 and 300 cached, 500000 micro-dollars ""`},
		"other items of codex": {codexStream, []string{
			`{"type":"item.completed","item":{"id":"i2","type":"file_change","changes":[{"path":"a","kind":"add"}],"status":"completed"}}`,
			`{"type":"item.completed","item":{"id":"i3","type":"reasoning","text":"hm"}}`,
			`{"type":"item.started","item":{"id":"i4","type":"mcp_tool_call","server":"s","tool":"t"}}`,
		}, `tool_result edit [{"path":"a","kind":"add"}] ""` + "\n" + `tool_call s.t  ""`},
		"an error of opencode": {opencodeStream, []string{`{"type":"error","sessionID":"s","error":{"name":"UnknownError","data":{"message":"no such model"}}}`}, `log "no such model"`},
		"an error of gemini":   {geminiStream, []string{`{"type":"error","severity":"error","message":"loop detected"}`}, `log "loop detected"`},
		"hostile numbers": {opencodeStream, []string{`{"type":"step_finish","part":{"tokens":{"input":-5,"output":9223372036854775807},"cost":1e300}}`},
			`usage_report 0 in, 1099511627776 out, 0 and 0 cached, 1000000000000 micro-dollars ""`},
		"nonsense to claude":   {claudeStream, []string{"", "x", "{", "[]", `{"type":"assistant"}`, `{"type":"assistant","message":{"content":"x"}}`, `{"type":"assistant","message":[]}`, `{"type":"step","step":"done"}`}, ""},
		"nonsense to codex":    {codexStream, []string{"", "x", "{", "[]", `{"type":"item.completed"}`, `{"type":"item.completed","item":[]}`, `{"type":"item.started","item":{"type":"agent_message","text":"x"}}`}, ""},
		"nonsense to opencode": {opencodeStream, []string{"", "x", "{", "[]", `{"type":"text","part":[]}`, `{"type":"reasoning","part":{"text":"x"}}`, `{"type":"tool_use","part":{"state":"x"}}`}, ""},
		"nonsense to gemini":   {geminiStream, []string{"", "x", "{", "[]", `{"type":"message","role":"user","content":"x"}`, `{"type":"message","role":"assistant","content":[]}`}, ""},
		"too many":             {claudeStream, []string{`{"type":"assistant","message":{"content":[` + strings.Repeat(`{"type":"text","text":"x"},`, 100) + `{"type":"text"}]}}`}, strings.TrimSpace(strings.Repeat(`text_delta "x\n"`+"\n", maxLineEvents))},
		"too long":             {claudeStream, []string{`{"type":"assistant","message":{"content":[{"type":"text","text":"` + strings.Repeat("x", maxLine) + `"}]}}`, `{"type":"assistant","message":{"content":[{"type":"text","text":"y"}]}}`}, `text_delta "y\n"`},
		"no stream":            {"", []string{`{"type":"assistant","message":{"content":[{"type":"text","text":"y"}]}}`}, ""},
	} {
		if got := strings.TrimSpace(eventWords(readWhole(t, c.stream, []byte(strings.Join(c.lines, "\n"))))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if _, err := NewEventReader("nobody", nil); err == nil || !strings.Contains(err.Error(), "claude, codex, gemini, opencode") {
		t.Errorf("unknown stream: %v", err)
	}
}

// The result of a call has the call's name, in every stream.
func TestResultsHaveTheirCalls(t *testing.T) {
	for stream := range streamReaders() {
		stdout, err := os.ReadFile(filepath.Join("testdata", "streams", stream+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for _, e := range readWhole(t, stream, stdout) {
			if e.Type == "tool_result" && (e.Call.Name == "" || e.TookMs < 0) {
				t.Errorf("%s: %+v", stream, e)
			}
			if e.IsError {
				failed++
			}
		}
		if failed == 0 {
			t.Errorf("%s: no failed call", stream)
		}
	}
}

// The answer is the last message, or what was printed without a stream; a failure
// is a failure.
func TestAnswersOfStreams(t *testing.T) {
	for _, c := range []struct{ stream, out, want string }{
		{codexStream, `{"type":"item.completed","item":{"type":"agent_message","text":"first"}}` + "\n" + `{"type":"item.completed","item":{"type":"agent_message","text":"last"}}`, "last"},
		{codexStream, "plain words\n", "plain words"},
		{codexStream, `{"type":"turn.started"}`, "none"},
		{codexStream, `{"type":"turn.failed","error":{"message":"out of tokens"}}`, "failed: out of tokens"},
		{codexStream, "", "none"},
		{opencodeStream, `{"type":"text","sessionID":"s","part":{"messageID":"1","text":"first"}}` + "\n" + `{"type":"text","sessionID":"s","part":{"messageID":"2","text":"a"}}` + "\n" + `{"type":"text","sessionID":"s","part":{"messageID":"2","text":"b"}}`, "a\nb"},
		{opencodeStream, `{"type":"error","sessionID":"s","error":{"name":"UnknownError"}}`, "failed: UnknownError"},
		{opencodeStream, `{"type":"step_start","sessionID":"s"}`, "none"},
		{geminiStream, `{"type":"message","role":"assistant","content":"I "}` + "\n" + `{"type":"tool_use"}` + "\n" + `{"type":"message","role":"assistant","content":"do"}` + "\n" + `{"type":"message","role":"assistant","content":"ne"}`, "done"},
		{geminiStream, `{"type":"result","status":"error","error":{"message":"no quota"}}`, "failed: no quota"},
		{claudeStream, `{"type":"result","is_error":true,"result":"no quota"}`, "failed: no quota"},
	} {
		if got := answerWords((Custom{}).WithStream(c.stream).Variant().Read([]byte(c.out))); got != c.want {
			t.Errorf("%s: %s: %q, want %q", c.stream, c.out, got, c.want)
		}
	}
}

func answerWords(e *envelope.Envelope, err error) string {
	switch {
	case err != nil:
		return "none"
	case e.Meta.Error != nil:
		return "failed: " + e.Meta.Error.Message
	}
	return e.Text()
}

// FuzzStreams: the events of a line are bounded, and so is the answer's reading.
func FuzzStreams(f *testing.F) {
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"tool_use","input":{}}]}}`))
	f.Add([]byte(`{"type":"item.completed","item":{"type":"command_execution","exit_code":1}}`))
	f.Add([]byte(`{"type":"tool_use","sessionID":"s","part":{"tool":"bash","state":{"status":"error","time":{"start":1,"end":-1e300}}}}`))
	f.Add([]byte(`{"type":"tool_result","tool_id":"x","status":"error","error":{"message":"m"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var seen progress
		for stream, read := range streamReaders() {
			for _, e := range read(line) {
				seen.matchCall(&e)
				if seen.admit(&e, len(line)) && (e.TookMs < 0 || e.MicroUSD < 0 || e.Usage != nil && e.Usage.Total() < 0) {
					t.Errorf("%s: %+v", stream, e)
				}
			}
			_, _ = (Custom{}).WithStream(stream).Variant().Read(line)
		}
		if seen.events > len(streamReaders())*maxLineEvents || seen.bytes > maxEventBytes || len(seen.calls) > maxOpenCalls {
			t.Errorf("%+v", seen)
		}
	})
}

// FuzzEventReader: however output is cut into pieces, its lines are the same.
func FuzzEventReader(f *testing.F) {
	f.Add([]byte("{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"a\"}\n{}\nx"), 3)
	f.Fuzz(func(t *testing.T, out []byte, piece int) {
		var whole, pieces []string
		a := &lineWriter{line: func(l []byte) { whole = append(whole, string(l)) }}
		b := &lineWriter{line: func(l []byte) { pieces = append(pieces, string(l)) }}
		_, _ = a.Write(out)
		for rest := out; len(rest) > 0; {
			n := min(len(rest), max(piece, 1))
			_, _ = b.Write(rest[:n])
			rest = rest[n:]
		}
		a.flush()
		b.flush()
		if strings.Join(whole, "\n") != strings.Join(pieces, "\n") {
			t.Errorf("%q and %q", whole, pieces)
		}
	})
}
