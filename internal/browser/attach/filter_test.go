package attach_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/browser/attach"
)

func newFilter() *attach.Filter { return attach.NewFilter(&attach.Contexts{}, nil) }

// call returns what a program sends.
func call(id int, method, params string) []byte {
	return fmt.Appendf(nil, `{"id":%d,"method":%q,"params":%s}`, id, method, params)
}

// must returns what follows from a message that ends no connection.
func must(t *testing.T, decide func([]byte) (*attach.Output, error), data []byte) *attach.Output {
	t.Helper()
	out, err := decide(data)
	if err != nil {
		t.Fatalf("%.200s: %v", data, err)
	}
	return out
}

// TestMethods checks which calls are passed on, answered and refused (attacks 8, 9, 10, 21).
func TestMethods(t *testing.T) {
	for _, c := range []struct{ method, params, want string }{
		{"Runtime.evaluate", `{"expression":"1"}`, "pass"},
		{"Browser.getVersion", `{}`, "pass"},
		{"Page.navigate", `{"url":"https://example.com/"}`, "pass"},
		{"Page.navigate", `{"url":"about:blank"}`, "pass"},
		{"Target.createTarget", `{"url":""}`, "pass"},
		{"Target.attachToBrowserTarget", `{}`, "pass"},
		{"Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true}`, "pass"},
		{"Target.setAutoAttach", `{"autoAttach":false,"waitForDebuggerOnStart":false}`, "pass"},
		{"Target.createBrowserContext", `{"disposeOnDetach":true}`, "pass"},
		{"Storage.getCookies", `{}`, "pass"},
		{"DOM.setFileInputFiles", `{"files":[]}`, "pass"},
		{"Fetch.continueRequest", `{"requestId":"1"}`, "pass"},
		{"Browser.setDownloadBehavior", `{"behavior":"allow","downloadPath":"/etc"}`, "answer"},
		{"Page.setDownloadBehavior", `{"behavior":"allow","downloadPath":"/etc"}`, "answer"},
		{"Browser.close", `{}`, "refuse"},
		{"Browser.crash", `{}`, "refuse"},
		{"Browser.crashGpuProcess", `{}`, "refuse"},
		{"Tracing.start", `{}`, "refuse"},
		{"SystemInfo.getProcessInfo", `{}`, "refuse"},
		{"Memory.simulatePressureNotification", `{}`, "refuse"},
		{"Tethering.bind", `{"port":9222}`, "refuse"},
		{"Extensions.loadUnpacked", `{"path":"/tmp"}`, "refuse"},
		{"PWA.launchFilesInApp", `{"files":["/etc/passwd"]}`, "refuse"},
		{"Target.exposeDevToolsProtocol", `{"targetId":"x"}`, "refuse"},
		{"Target.sendMessageToTarget", `{"message":"{}"}`, "refuse"},
		{"Target.attachToTarget", `{"targetId":"x"}`, "refuse"},
		{"Target.setAutoAttach", `{"autoAttach":true,"flatten":false}`, "refuse"},
		{"Target.createBrowserContext", `{"proxyServer":"direct://"}`, "refuse"},
		{"Target.createBrowserContext", `{"proxyBypassList":"127.0.0.1"}`, "refuse"},
		{"Target.createBrowserContext", `{"originsWithUniversalNetworkAccess":["http://a"]}`, "refuse"},
		{"Target.createTarget", `{"url":"file:///etc/passwd"}`, "refuse"},
		{"Page.navigate", `{"url":"file:///etc/passwd"}`, "refuse"},
		{"Page.navigate", `{"url":"FILE:///etc/passwd"}`, "refuse"},
		{"Page.navigate", `{"url":" file:///etc/passwd"}`, "refuse"},
		{"Page.navigate", `{"url":"view-source:file:///etc/passwd"}`, "refuse"},
		{"Page.navigate", `{"url":"chrome://version"}`, "refuse"},
		{"Page.navigate", `{"url":"devtools://devtools"}`, "refuse"},
		{"Page.navigate", `{"url":"javascript:alert(1)"}`, "refuse"},
		{"Page.navigate", `{"url":"java\tscript:alert(1)"}`, "refuse"},
		{"Page.navigate", `{"url":"data:text/html,x"}`, "refuse"},
		{"Page.navigate", `{"url":["file:///etc/passwd"]}`, "refuse"},
		{"Fetch.continueRequest", `{"url":"file:///etc/passwd"}`, "refuse"},
		{"Network.loadNetworkResource", `{"url":"file:///etc/passwd"}`, "refuse"},
		{"DOM.setFileInputFiles", `{"files":["/etc/passwd"]}`, "refuse"},
		{"DOM.setFileInputFiles", `{"files":["/proc/1/environ"]}`, "refuse"},
		{"Input.dispatchDragEvent", `{"data":{"items":[],"files":["/etc/passwd"]}}`, "refuse"},
	} {
		t.Run(c.method+" "+c.params, func(t *testing.T) {
			out := must(t, newFilter().FromProgram, call(7, c.method, c.params))
			if got := kind(t, out); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// kind says what became of a call.
func kind(t *testing.T, out *attach.Output) string {
	t.Helper()
	if len(out.ToBrowser) == 1 && out.ToProgram == nil {
		return "pass"
	}
	var answer struct {
		ID     int
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(out.ToProgram, &answer); err != nil || answer.ID == 0 {
		t.Fatalf("%s: %v", out.ToProgram, err)
	}
	if answer.Error != nil && answer.Error.Message != "" {
		return "refuse"
	}
	if string(answer.Result) == "{}" {
		return "answer"
	}
	return string(out.ToProgram)
}

// TestStagedFiles checks that files that were put into the sandbox for it can be uploaded.
func TestStagedFiles(t *testing.T) {
	f := attach.NewFilter(&attach.Contexts{}, func(path string) bool { return path == "/uploads/1" })
	for files, want := range map[string]string{`["/uploads/1"]`: "pass", `["/uploads/1","/etc/passwd"]`: "refuse"} {
		if got := kind(t, must(t, f.FromProgram, call(len(files), "DOM.setFileInputFiles", `{"files":`+files+`}`))); got != want {
			t.Error(files, got)
		}
	}
}

// TestContextParameters checks that a browser context keeps no parameter of the program.
func TestContextParameters(t *testing.T) {
	out := must(t, newFilter().FromProgram, call(1, "Target.createBrowserContext", `{"disposeOnDetach":false,"later":"x"}`))
	if got := string(out.ToBrowser[0]); !strings.Contains(got, `"params":{"disposeOnDetach":true}`) {
		t.Error(got)
	}
}

// TestLies checks that a program or a browser that breaks the protocol is cut (attacks 4, 21).
func TestLies(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, text := range map[string]string{
		"garbage": "garbage", "empty": "", "a list": "[]", "two values": `{"id":1,"method":"A.b"}{"id":2,"method":"A.b"}`,
		"no id": `{"method":"Page.enable"}`, "negative id": `{"id":-1,"method":"Page.enable"}`, "text as id": `{"id":"1","method":"Page.enable"}`,
		"fraction": `{"id":1.5,"method":"Page.enable"}`, "the filter's ids": `{"id":1073741825,"method":"Page.enable"}`,
		"no method": `{"id":1}`, "no domain": `{"id":1,"method":"enable"}`, "escapes": `{"id":1,"method":"Page.\u0000enable"}`,
		"an answer": `{"id":1,"method":"Page.enable","result":{}}`, "params as list": `{"id":1,"method":"Page.enable","params":[]}`,
		"two methods": `{"id":1,"method":"Page.enable","method":"Browser.close"}`,
		"two urls":    `{"id":1,"method":"Page.navigate","params":{"url":"about:blank","url":"file:///"}}`,
		"deep":        `{"id":1,"method":"Page.enable","params":{"a":` + deep(attach.MaxDepth) + `}}`,
		"long name":   `{"id":1,"method":"Page.enable","sessionId":"` + strings.Repeat("x", 200) + `"}`,
	} {
		if out, err := newFilter().FromProgram([]byte(text)); err == nil {
			t.Errorf("program, %s: %s", name, out.ToBrowser)
		}
	}
	for name, text := range map[string]string{
		"garbage": "garbage", "empty": "", "never asked": `{"id":5,"result":{}}`, "the filter's": `{"id":1073741825,"result":{}}`,
		"other session": `{"id":1,"sessionId":"S","result":{}}`, "bad event": `{"method":"x"}`, "deep": `{"method":"A.b","params":{"a":` + deep(2000) + `}}`,
		"twice": `{"id":1,"id":1,"result":{}}`, "a session without a name": `{"method":"Target.attachedToTarget","params":{}}`,
	} {
		f := newFilter()
		must(t, f.FromBrowser, attached("S", ""))
		must(t, f.FromProgram, call(1, "Page.enable", "{}"))
		if out, err := f.FromBrowser([]byte(text)); err == nil {
			t.Errorf("browser, %s: %s", name, out.ToProgram)
		}
	}
}

// attached returns the event of a session.
func attached(session, context string) []byte {
	return fmt.Appendf(nil, `{"method":"Target.attachedToTarget","params":{"sessionId":%q,"targetInfo":{"targetId":"T","browserContextId":%q},"waitingForDebugger":true}}`, session, context)
}

// TestAnswers checks that an answer is passed on once, and that a call holds its id until then.
func TestAnswers(t *testing.T) {
	f := newFilter()
	must(t, f.FromProgram, call(1, "Page.enable", "{}"))
	if _, err := f.FromProgram(call(1, "Page.enable", "{}")); err == nil {
		t.Error("an id was used twice")
	}
	answer := []byte(`{"id":1,"result":{"a":"\ud800"}}`)
	if out := must(t, f.FromBrowser, answer); string(out.ToProgram) != string(answer) {
		t.Errorf("%s", out.ToProgram)
	}
	if _, err := f.FromBrowser(answer); err == nil {
		t.Error("a second answer was passed on")
	}
	must(t, f.FromProgram, call(1, "Page.enable", "{}"))
}

// TestCallsAreBounded checks that a program with too many open calls is told so.
func TestCallsAreBounded(t *testing.T) {
	f := newFilter()
	for i := range attach.MaxCalls {
		must(t, f.FromProgram, call(i+1, "Page.enable", "{}"))
	}
	if got := kind(t, must(t, f.FromProgram, call(1000, "Page.enable", "{}"))); got != "refuse" {
		t.Error(got)
	}
	must(t, f.FromBrowser, []byte(`{"id":1,"result":{}}`))
	if got := kind(t, must(t, f.FromProgram, call(1000, "Page.enable", "{}"))); got != "pass" {
		t.Error(got)
	}
}

// TestCounts checks that what programs ask for is counted under bounded names.
func TestCounts(t *testing.T) {
	f := newFilter()
	must(t, f.FromProgram, call(1, "Browser.close", "{}"))
	for i := range 1000 {
		must(t, f.FromProgram, call(i+1, "Tracing.a"+strings.Repeat("b", i%40)+strings.Repeat("C", i/40), "{}"))
	}
	_, refused := f.Counts()
	if refused["Browser.close"] != 1 || len(refused) > 201 || refused["other"] == 0 {
		t.Error(len(refused), refused["Browser.close"], refused["other"])
	}
}
