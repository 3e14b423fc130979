package ws_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/gateway/ws"
)

// step is a line of a transcript of the real gateway.
type step struct {
	Dir   string          `json:"dir"`
	Frame json.RawMessage `json:"frame"`
}

func transcript(t *testing.T, name string) (steps []step) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s step
		if err := json.Unmarshal([]byte(strings.ReplaceAll(lines.Text(), "$TOKEN", fixed)), &s); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, s)
	}
	return steps
}

// kind names what a frame of the gateway is, so that theirs and ours can be paired.
func kind(f *frame) string {
	switch {
	case f.Type == "res" && !f.OK:
		return "res " + f.ID + " " + f.Error.Code
	case f.Type == "res" && f.text("status") != "":
		return "res " + f.ID + " " + f.text("status")
	case f.Type == "res":
		return "res " + f.ID
	case f.Event == "agent":
		return strings.TrimSpace("agent " + f.text("stream") + " " + f.text("data", "phase"))
	case f.Event == "chat":
		return "chat " + f.text("state")
	}
	return f.Event
}

// paths are the members of a value with their types; elements of arrays are one.
func paths(at string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		into[at] = "object"
		for key, member := range v {
			paths(at+"."+key, member, into)
		}
	case []any:
		into[at] = "array"
		for _, element := range v {
			paths(at+"[]", element, into)
		}
	case string:
		into[at] = "string"
	case float64:
		into[at] = "number"
	case bool:
		into[at] = "boolean"
	default:
		if into[at] == "" {
			into[at] = "null"
		}
	}
}

// shapes are the members of all frames of a kind.
func shapes(frames []*frame) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, f := range frames {
		k := kind(f)
		if all[k] == nil {
			all[k] = map[string]string{}
		}
		var v any
		_ = json.Unmarshal(f.raw, &v)
		paths("", v, all[k])
	}
	return all
}

// The real gateway's conversations, had with ours: the same kinds of frames, in the
// same order, with the same members of the same types. What differs is listed
// here, and nothing else may.
func TestConformance(t *testing.T) {
	for _, name := range []string{"v3-2026.2.26", "v4-2026.9.6"} {
		t.Run(name, func(t *testing.T) {
			theirs, ours := replay(t, name+".jsonl")
			compareShapes(t, name[:2], shapes(theirs), shapes(ours))
			if diff := cmp.Diff(order(theirs), order(ours)); diff != "" {
				t.Errorf("the order of a turn's frames differs (-theirs +ours):\n%s", diff)
			}
		})
	}
}

// replay says to our gateway what was said to theirs.
func replay(t *testing.T, name string) (theirs, ours []*frame) {
	t.Helper()
	p := gateway(t, ws.Limits{Throttle: 1})
	e := p.dial()
	// Their state had a session already.
	before := p.connect(4, fixed)
	before.must("agent", map[string]any{"message": "before", "sessionKey": "main", "idempotencyKey": "before"})
	before.event("chat", map[string]string{"state": "final"})
	waiting := []string{}
	for _, s := range transcript(t, name) {
		f := &frame{raw: s.Frame}
		switch s.Dir {
		case "<":
			_ = json.Unmarshal(s.Frame, f)
			theirs = append(theirs, f)
			if f.Type == "res" && f.text("status") != "accepted" {
				e.find(name+": "+kind(f), 1, func(got *frame) bool { return kind(got) == kind(f) })
			}
			if f.Event == "chat" && f.text("state") == "final" {
				e.event("chat", map[string]string{"state": "final", "runId": f.text("runId")})
			}
		case ">":
			e.say([]byte(s.Frame))
		case "close":
			ours, _, _ = e.so()
		}
	}
	_ = waiting
	return theirs, ours
}

// differences are the members that only one of the two has, by version, in the
// file where each is listed: "- " what ours leave out, "+ " what they add. A path
// that ends in "*" is everything below.
func differences(t *testing.T, version, sign string) (list []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "differences.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if entry, ok := strings.CutPrefix(strings.TrimSpace(line), sign+" "+version+" "); ok {
			list = append(list, entry)
		}
	}
	return list
}

// others are kinds of frames that only they send: what we do not do, and what they
// tell again and again.
func others() []string {
	return []string{"health", "task", "chat.metadata.changed", "agent run_status", "agent lifecycle finishing", "agent lifecycle model"}
}

func compareShapes(t *testing.T, version string, theirs, ours map[string]map[string]string) {
	t.Helper()
	leftOut, added := differences(t, version, "-"), differences(t, version, "+")
	for k, members := range theirs {
		if slices.Contains(others(), strings.TrimSpace(k)) || strings.HasPrefix(k, "agent run_status") {
			continue
		}
		got := ours[k]
		if got == nil {
			t.Errorf("ours has no frame %q", k)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(members)) {
			switch {
			case listed(leftOut, k, path):
			case got[path] == "":
				t.Errorf("%s: ours has no %s", k, path)
			case got[path] != members[path] && got[path] != "null" && members[path] != "null":
				t.Errorf("%s: %s is %s, want %s", k, path, got[path], members[path])
			}
		}
		for _, path := range slices.Sorted(maps.Keys(got)) {
			if members[path] == "" && !listed(added, k, path) {
				t.Errorf("%s: theirs has no %s", k, path)
			}
		}
	}
}

// listed reports whether a list names a member of a kind.
func listed(list []string, kind, path string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		i := strings.Index(entry, " .")
		k, p := entry[:i], entry[i+1:]
		return matches(k, kind) && matches(p, path)
	})
}

func matches(pattern, text string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(text, head)
	}
	return pattern == text
}

// order is what a turn of the chat looks like, by kinds of events, once each.
func order(frames []*frame) (kinds []string) {
	for _, f := range frames {
		if f.text("runId") != "idem-chat-1" || f.Type != "event" {
			continue
		}
		k := kind(f)
		if k == "chat delta" || k == "agent assistant" {
			k = "saying"
		}
		skip := slices.Contains(others(), k) || strings.HasPrefix(k, "agent run_status") || k == "chat status"
		if !skip && (len(kinds) == 0 || kinds[len(kinds)-1] != k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// What the real gateway refuses, ours refuses with the same codes, details and words.
func TestConformanceOfRefusals(t *testing.T) {
	for _, name := range []string{"v3-refused-1", "v3-refused-2", "v4-refused-1", "v4-refused-2"} {
		t.Run(name, func(t *testing.T) {
			p := gateway(t, ws.Limits{})
			e := p.dial()
			for _, s := range transcript(t, name+".jsonl") {
				switch s.Dir {
				case ">":
					e.say(unspoken(name, s.Frame))
				case "close":
					var want struct {
						Code   int
						Reason string
					}
					_ = json.Unmarshal(s.Frame, &want)
					if code, reason := e.closed(); code != want.Code || reason != want.Reason {
						t.Errorf("closed with %d %q, want %d %q", code, reason, want.Code, want.Reason)
					}
				default:
					compareRefusal(t, e, name, s.Frame)
				}
			}
		})
	}
}

// unspoken makes a request for a version that the recorded gateway did not speak
// one for a version that ours does not speak: ours speaks both.
func unspoken(name string, data []byte) []byte {
	if name != "v4-refused-2" {
		return data
	}
	return []byte(strings.NewReplacer(`"minProtocol":3`, `"minProtocol":2`, `"maxProtocol":3`, `"maxProtocol":2`).Replace(string(data)))
}

func compareRefusal(t *testing.T, e *peer, name string, data []byte) {
	t.Helper()
	want := &frame{raw: []byte(strings.NewReplacer(`MinProtocol":3`, `MinProtocol":2`, `MaxProtocol":3`, `MaxProtocol":2`).Replace(string(data)))}
	_ = json.Unmarshal(want.raw, want)
	if want.Type != "res" {
		return
	}
	got := e.find(name, 1, func(f *frame) bool { return f.Type == "res" })
	var a, b any
	_ = json.Unmarshal(want.raw, &a)
	_ = json.Unmarshal(got.raw, &b)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("%s (-theirs +ours):\n%s", name, diff)
	}
}

// Wrong requests get the words that clients of each version know.
func TestWrongRequests(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := gateway(t, ws.Limits{}).connect(version, fixed)
		short := "must NOT have fewer than 1 characters"
		all := "; must have required property 'idempotencyKey'"
		if version == 4 {
			short, all = "must not have fewer than 1 characters", ""
		}
		for _, c := range []struct{ method, params, want string }{
			{"no.such.method", `{}`, "unknown method: no.such.method"},
			{"connect", `{}`, "connect is only valid as the first request"},
			{"agent", `{}`, "invalid agent params: must have required property 'message'" + all},
			{"agent", `{"message":"","idempotencyKey":"i"}`, "invalid agent params: at /message: " + short},
			{"agent", `{"message":"x","idempotencyKey":"i","bogus":1}`, "invalid agent params: at root: unexpected property 'bogus'"},
			{"agent", `{"message":"x","idempotencyKey":"i","agentId":"nobody"}`, `invalid agent params: unknown agent id "nobody"`},
			{"agent", `{"message":5,"idempotencyKey":"i"}`, "invalid agent params: at /message: must be string"},
			{"agent.wait", `{"runId":"x","timeoutMs":-1}`, "invalid agent.wait params: at /timeoutMs: must be >= 0"},
			{"chat.history", `{"sessionKey":"main","limit":1001}`, "invalid chat.history params: at /limit: must be <= 1000"},
			{"chat.history", `[]`, "invalid chat.history params: must be object"},
			{"sessions.patch", `{"key":"main","thinkingLevel":"bogus"}`, "invalid thinkingLevel (use off|minimal|low|medium|high)"},
			{"sessions.patch", `{"key":"main","elevatedLevel":"on"}`, "elevatedLevel cannot be changed: agents of this gateway work in sandboxes"},
			{"sessions.delete", `{"key":"main"}`, "Cannot delete the main session (agent:main:main)."},
		} {
			f := e.call(c.method, json.RawMessage(c.params))
			if f.OK || f.Error.Code != "INVALID_REQUEST" || f.Error.Message != c.want {
				t.Errorf("%s %s: %v\nwant %s", c.method, c.params, f.Error, c.want)
			}
		}
	})
}
