package tool_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/tool"
)

func TestExec(t *testing.T) {
	k := newKit(t)
	k.put("sub/file", "x")
	k.ok("exec", args{"command": "echo out; echo err >&2"}, "out\n[stderr]\nerr\n[exit code 0, ")
	k.ok("exec", args{"argv": []string{"printf", "%s|", "a b", "$HOME"}}, "a b|$HOME|\n[exit code 0")
	k.ok("exec", args{"command": "pwd; ls"}, k.dir+"\nsub\n")
	k.ok("exec", args{"command": "pwd", "cwd": "sub"}, k.dir+"/sub\n")
	k.ok("exec", args{"command": "pwd", "cwd": "/usr"}, "/usr\n")
	k.ok("exec", args{"command": "echo $A", "env": args{"A": "1"}}, "1\n")
	k.ok("exec", args{"command": "cat", "stdin": "typed"}, "typed\n[exit")
	k.ok("exec", args{"command": "[ -t 0 ] && stty size", "tty": true}, "24 80")
	k.ok("bash", args{"command": "true"}, "[exit code 0, ")
	k.fails("exec", args{"command": "echo before; exit 3"}, "before\n[exit code 3, ")
	k.fails("exec", args{"command": "kill -9 $$"}, "[ended by SIGKILL, exit code 137, ")
	k.fails("exec", args{"command": "sleep 60", "timeout": 0.2}, "[ended after the timeout of 200ms: ")
	k.fails("exec", args{"argv": []string{"no-such-program"}}, "no-such-program", "hint: argv is run without a shell")
	k.fails("exec", args{"command": "true", "cwd": "nowhere"}, "nowhere", "hint: ")
	k.fails("exec", args{"command": "true", "env": args{"GITHUB_TOKEN": "sesame"}}, "GITHUB_TOKEN", "name is that of a secret")
	k.ok("exec", args{"command": "nohup sleep 1 >/dev/null 2>&1 & echo started"}, "started")
}

func TestExecDetails(t *testing.T) {
	k := newKit(t)
	result := k.fails("exec", args{"command": "echo 12345; exit 7"})
	text, err := json.Marshal(result.Details)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"exitCode":7`, `"stdoutBytes":6`, `"truncated":false`, `"timedOut":false`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if result.Where != "isolated" || result.Sandbox != "sbx" {
		t.Errorf("it worked in %q, %q", result.Where, result.Sandbox)
	}
}

// TestExecFlood is a command that prints more than anybody reads.
func TestExecFlood(t *testing.T) {
	k := newKit(t)
	result := k.ok("exec", args{"command": "echo first; head -c 10000000 /dev/zero | tr '\\0' 'x' | fold -w 100; echo last"},
		"first\n", "\n[… 9.6 MiB left out …]\n", "last\n", "send the output to a file")
	if len(result.Text) > 40<<10 {
		t.Errorf("the text has %d bytes", len(result.Text))
	}
	k.ok("exec", args{"command": "head -c 3000000 /dev/urandom"}, "[2.9 MiB of binary output]")
	result = k.ok("exec", args{"command": `printf 'caf\351 \033[31mred\033[0m \033]0;title\007\r\nbell\007\n'`}, "caf\uFFFD red \nbell\n")
	if !utf8.ValidString(result.Text) {
		t.Errorf("not UTF-8: %q", result.Text)
	}
}

func TestBackground(t *testing.T) {
	k := newKit(t)
	k.ok("process", args{"action": "list"}, "no processes")
	started := k.ok("exec", args{"command": "echo hello; read line; echo got $line; exit 4", "background": true})
	id := started.Details.(map[string]any)["id"].(string)
	if !strings.Contains(started.Text, id) {
		t.Errorf("the id is not in %s", started.Text)
	}
	k.ok("process", args{"action": "poll", "id": id, "wait": 5}, "hello\n[running]")
	if again := k.ok("process", args{"action": "poll", "id": id}, "[running]"); strings.Contains(again.Text, "hello") {
		t.Errorf("a poll shows old output: %s", again.Text)
	}
	k.ok("process", args{"action": "list"}, id+"  running  6 bytes out, 0 bytes err  ")
	k.ok("process", args{"action": "write", "id": id, "input": "input\n"}, "6 bytes written")
	k.fails("process", args{"action": "wait", "id": id, "wait": 20}, "got input\n[exit code 4, ")
	k.fails("process", args{"action": "logs", "id": id}, "hello\ngot input\n[exit code 4")
	k.fails("process", args{"action": "logs", "id": id, "offset": 8, "stream": "stdout"}, "t input\n[exit")
	k.ok("process", args{"action": "list"}, "exit 4")
	k.ok("process", args{"action": "forget", "id": id}, "forgotten")
	k.fails("process", args{"action": "poll", "id": id}, "no such process", "hint: the action list")
}

func TestEndBackground(t *testing.T) {
	k := newKit(t)
	id := k.background("trap 'echo caught' INT; while :; do sleep 0.1; done")
	k.fails("process", args{"action": "forget", "id": id}, "still runs", "kill it first")
	time.Sleep(200 * time.Millisecond)
	k.ok("process", args{"action": "signal", "id": id, "signal": "int"}, "SIGINT sent")
	k.ok("process", args{"action": "poll", "id": id, "wait": 5}, "caught")
	start := time.Now()
	k.ok("process", args{"action": "wait", "id": id, "wait": 0.3}, "[running]")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("waiting for 0.3 s took %v", took)
	}
	k.ok("process", args{"action": "kill", "id": id}, "have ended")
	k.fails("process", args{"action": "poll", "id": id}, "[ended by SIG")
	k.fails("process", args{"action": "signal", "id": id, "signal": "SIGNOTHING"})
}

// TestHugeCalls are larger than the wire takes: the model is told, and the
// session goes on.
func TestHugeCalls(t *testing.T) {
	k := newKit(t)
	k.fails("exec", args{"command": "true " + strings.Repeat("x", 3<<20)}, "over the limit")
	k.fails("exec", args{"command": "cat", "env": args{"A": strings.Repeat("x", 200_000)}}, "A")
	k.ok("exec", args{"command": "wc -c", "stdin": strings.Repeat("x", 3<<20)}, "3145728")
	id := k.background("sleep 60")
	k.fails("process", args{"action": "write", "id": id, "input": strings.Repeat("x", 4<<20)}, "did not read all of its input")
	k.ok("process", args{"action": "kill", "id": id})
	k.ok("exec", args{"command": "echo alive"}, "alive")
}

// TestManyAtOnce is a model that makes all its calls in one turn.
func TestManyAtOnce(t *testing.T) {
	k := newKit(t)
	k.put("f", "x\n")
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			name := fmt.Sprintf("g%d", i)
			for _, c := range []struct {
				tool string
				args args
			}{
				{"write", args{"path": name, "content": "a\n"}},
				{"edit", args{"path": name, "oldText": "a", "newText": "b"}},
				{"read", args{"path": "f"}},
				{"exec", args{"command": "cat " + name}},
			} {
				if result, err := k.try(c.tool, c.args); err != nil || result.IsError {
					t.Errorf("%s: %+v, %v", c.tool, result, err)
				}
			}
		})
	}
	calls.Wait()
}

// FuzzArguments: whatever a model writes is decoded or refused in few words.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"command":"x"}`, `{"path":"a","edits":[{"oldText":"x"}]}`, `{"action":"poll","id":"A"}`, `[`, `{"a":{"b":[1e999]}}`, `{"path":"\ud800"}`,
		`{"timeout":1e400}`, `null`, `{"path":"x","path":"x"}`, "{\"\xff\":1}", `{"":0}`, `{"offset":-1,"path":"x","limit":99999999999999999999}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, x := range tool.All() {
			err := x.Check(jsontext.Value(text))
			if err != nil && len(err.Error()) > 2000+len(text) {
				t.Errorf("%s: %d bytes of error about %d of arguments", x.Name, len(err.Error()), len(text))
			}
		}
	})
}

func (k *kit) background(command string) string {
	k.t.Helper()
	return k.ok("exec", args{"command": command, "background": true}).Details.(map[string]any)["id"].(string)
}

// TestBackgroundFlood has a process print more than is kept.
func TestBackgroundFlood(t *testing.T) {
	k := newKit(t)
	id := k.background("head -c 20000000 /dev/zero | tr '\\0' y | fold -w 99; echo last")
	k.ok("process", args{"action": "wait", "id": id}, "[exit code 0")
	first := k.ok("process", args{"action": "logs", "id": id}, "more of stdout: logs with offset ")
	if len(first.Text) > 40<<10 {
		t.Errorf("%d bytes", len(first.Text))
	}
	k.ok("process", args{"action": "logs", "id": id, "offset": -1000}, "yyy\n", "last\n[exit code 0")
}

func TestArguments(t *testing.T) {
	k := newKit(t)
	cases := []struct{ name, tool, args, want string }{
		{"unknown", "exec", `{"command":"true","shell":true}`, `exec: arguments: "/shell" is not known (known: command, argv`},
		{"other case", "exec", `{"Command":"true"}`, `"/Command" is not known (did you mean "command"?)`},
		{"other form", "edit", `{"path":"x","old_text":"a"}`, `"/old_text" is not known (did you mean "oldText"?)`},
		{"twice", "exec", `{"command":"true","command":"false"}`, `"/command": duplicate object member name`},
		{"wrong kind", "exec", `{"command":["true"]}`, `"/command" must be a string, not a list`},
		{"wrong kind inside", "exec", `{"argv":["a",1]}`, `"/argv/1" must be a string, not a number`},
		{"fraction", "read", `{"path":"x","offset":1.5}`, `"/offset"`},
		{"unknown inside", "edit", `{"path":"x","edits":[{"oldText":"a","newText":"b","all":true}]}`, `"/edits/0/all" is not known`},
		{"missing", "read", `{}`, `"/path" is missing`},
		{"null", "read", `{"path":null}`, `"/path" is missing`},
		{"both", "exec", `{"command":"a","argv":["b"]}`, "exactly one of"},
		{"neither", "exec", `{}`, "exactly one of"},
		{"several at once", "exec", `{"timeout":-1,"background":true,"stdin":"x"}`, "exactly one of \"/command\" and \"/argv\" must be given\n\"/timeout\""},
		{"not an object", "exec", `["true"]`, "not a JSON object"},
		{"not JSON", "exec", `{"command":`, "unexpected EOF"},
		{"not UTF-8", "exec", "{\"command\":\"\xff\"}", "invalid UTF-8"},
		{"deep", "exec", `{"command":` + strings.Repeat("[", 20000), "exceeded max depth"},
		{"rest", "exec", `{"command":"true"} x`, "invalid character 'x'"},
		{"bad action", "process", `{"action":"dance"}`, `"/action" must be one of`},
		{"no id", "process", `{"action":"poll"}`, `"/id" is missing`},
		{"no such tool", "fly", `{}`, `no such tool`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := k.try(c.tool, c.args)
			if e, ok := errors.AsType[*tool.ArgumentsError](err); !ok || !strings.Contains(e.Error(), c.want) {
				t.Errorf("got %.300v, want %s", err, c.want)
			}
		})
	}
	_, err := k.try("write", fmt.Sprintf(`{"path":"x","content":%q}`, strings.Repeat("x", tool.MaxArguments)))
	if _, ok := errors.AsType[*tool.ArgumentsError](err); !ok || len(err.Error()) > 300 {
		t.Errorf("got %.300v", err)
	}
}
