package run

import (
	"strings"
	"testing"
)

// told is what lines tell, an event a word.
func told(read func([]byte) []Event, lines ...string) string {
	var all []string
	for _, line := range lines {
		for _, e := range read([]byte(line)) {
			word := e.Type
			if e.Call != nil {
				word += " " + e.Call.Name + " " + e.Call.Args
			}
			if e.IsError {
				word += " failed"
			}
			all = append(all, strings.TrimSpace(word+" "+strings.TrimSpace(e.Text)))
		}
	}
	return strings.Join(all, "; ")
}

// The programs' own streams tell what they do; lines of other kinds, and lines
// that are not what they should be, tell nothing.
func TestStreams(t *testing.T) {
	for name, c := range map[string]struct {
		read  func([]byte) []Event
		lines []string
		want  string
	}{
		"claude": {claudeLine, []string{
			`{"type":"system","subtype":"init","session_id":"x"}`,
			`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}`,
			`{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"no such file","is_error":true}]}}`,
			`{"type":"user","message":{"content":[{"tool_use_id":"t2","type":"tool_result","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}}`,
			`{"type":"result","result":"done","is_error":false}`,
		}, `text_delta I look.; tool_call Bash {"command":"ls"}; tool_result   failed no such file; tool_result   a` + "\nb"},
		"codex": {codexLine, []string{
			`{"type":"thread.started","thread_id":"x"}`, `{"type":"turn.started"}`,
			`{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"bash -lc ls","aggregated_output":"","status":"in_progress"}}`,
			`{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"bash -lc ls","aggregated_output":"a\n","exit_code":1,"status":"failed"}}`,
			`{"type":"item.completed","item":{"id":"i2","type":"file_change","changes":[{"path":"a","kind":"add"}],"status":"completed"}}`,
			`{"type":"item.completed","item":{"id":"i3","type":"reasoning","text":"hm"}}`,
			`{"type":"item.completed","item":{"id":"i4","type":"agent_message","text":"done"}}`,
		}, `tool_call exec bash -lc ls; tool_result exec bash -lc ls failed a; tool_result edit [{"path":"a","kind":"add"}]; text_delta done`},
		"nonsense to claude": {claudeLine, []string{"", "x", "{", "[]", `{"type":"assistant"}`, `{"type":"assistant","message":{"content":"x"}}`, `{"type":"assistant","message":[]}`, `{"type":"step","step":"done"}`}, ""},
		"nonsense to codex":  {codexLine, []string{"", "x", "{", "[]", `{"type":"item.completed"}`, `{"type":"item.completed","item":[]}`, `{"type":"item.started","item":{"type":"agent_message","text":"x"}}`}, ""},
		"too many":           {claudeLine, []string{`{"type":"assistant","message":{"content":[` + strings.Repeat(`{"type":"text","text":"x"},`, 100) + `{"type":"text"}]}}`}, strings.TrimSuffix(strings.Repeat("text_delta x; ", maxLineEvents), "; ")},
	} {
		if got := told(c.read, c.lines...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The answer of codex is its last message, or what it printed without --json; a
// turn that failed is a failure.
func TestReadCodex(t *testing.T) {
	for out, want := range map[string]string{
		`{"type":"item.completed","item":{"type":"agent_message","text":"first"}}` + "\n" + `{"type":"item.completed","item":{"type":"agent_message","text":"last"}}`: "last",
		"plain words\n":           "plain words",
		`{"type":"turn.started"}`: "no JSON object with a result",
		`{"type":"turn.failed","error":{"message":"out of tokens"}}`: "failed: out of tokens",
		"": "no JSON object with a result",
	} {
		e, err := readCodex(Custom{}, &Result{Stdout: []byte(out)})
		got := ""
		switch {
		case err != nil:
			got = "no JSON object with a result"
		case e.Meta.Error != nil:
			got = "failed: " + e.Meta.Error.Message
		default:
			got = e.Text()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", out, got, want)
		}
	}
}

// What a program says is bounded, whatever it says.
func FuzzStreams(f *testing.F) {
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"tool_use","input":{}}]}}`))
	f.Add([]byte(`{"type":"item.completed","item":{"type":"command_execution","exit_code":1}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var heard progress
		for _, e := range append(claudeLine(line), codexLine(line)...) {
			if e.Call != nil {
				heard.matchCall(&e)
			}
			heard.admit(&e, len(line))
		}
		if heard.events > 2*maxLineEvents || heard.bytes > maxEventBytes || len(heard.calls) > maxOpenCalls {
			t.Errorf("%+v", heard)
		}
	})
}
