package attach_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzMessages checks with any messages that what reaches the browser is one call with a
// method that is not refused, and that nothing is answered to nobody.
func FuzzMessages(f *testing.F) {
	f.Add(`{"id":1,"method":"Page.navigate","params":{"url":"about:blank"}}`, `{"id":1,"result":{}}`)
	f.Add(`{"id":1,"method":"Target.getTargets"}`, `{"id":1,"result":{"targetInfos":[{"browserContextId":"x"}]}}`)
	f.Add(`{"id":1,"method":"Target.createBrowserContext"}`, `{"id":1,"result":{"browserContextId":"x"}}`)
	f.Add(`{"id":1,"method":"Browser.close"}`, `{"method":"Target.attachedToTarget","params":{"sessionId":"S","targetInfo":{}}}`)
	f.Add(`{"id":1,"method":"Page.enable","sessionId":"S"}`, `{"method":"Target.detachedFromTarget","params":{"sessionId":"S"}}`)
	f.Fuzz(func(t *testing.T, program, browser string) {
		filter := newFilter()
		for range 2 {
			out, err := filter.FromProgram([]byte(program))
			if err == nil && len(out.ToBrowser) > 0 {
				checkCall(t, out.ToBrowser[0])
			}
			if out, err := filter.FromBrowser([]byte(browser)); err == nil && out.ToProgram != nil && !json.Valid(out.ToProgram) {
				t.Errorf("%q", out.ToProgram)
			}
		}
	})
}

func checkCall(t *testing.T, text []byte) {
	t.Helper()
	var m struct {
		ID     *int64
		Method string
		Params struct{ URL string }
	}
	if err := json.Unmarshal(text, &m); err != nil || m.ID == nil {
		t.Fatalf("%q: %v", text, err)
	}
	if strings.HasPrefix(m.Method, "Tracing.") || m.Method == "Browser.close" {
		t.Errorf("%q", text)
	}
	if m.Method == "Page.navigate" && strings.HasPrefix(strings.ToLower(m.Params.URL), "file:") {
		t.Errorf("%q", text)
	}
}
