package inspect_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestARequestIsJudgedRecordedAndAnswered(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo))
	status, text, _ := w.do("POST", "/a%20b?c=d", "hello", "X-One", "1", "X-One", "2", "Te", "trailers")
	if status != 200 || !strings.Contains(text, "POST /a%20b?c=d "+site+"\n") || !strings.HasSuffix(text, "hello") || !strings.Contains(text, "X-One: 1\r\nX-One: 2") || strings.Contains(text, "Te:") {
		t.Errorf("%d %s", status, text)
	}
	if len(w.recorded) != 1 || w.recorded[0] != "POST /a%20b" {
		t.Errorf("%q", w.recorded)
	}
}
