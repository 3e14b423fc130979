package app_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/browser"
)

// attackSchemes (8): neither the tool nor a page that it uses opens what is not the web.
func attackSchemes(t *testing.T, s *attackSite) {
	for _, address := range []string{"file:///etc/passwd", "view-source:file:///etc/passwd", "chrome://version", "devtools://x", "javascript:1", "data:text/html,x"} {
		if r := s.do(t, `{"action":"open","url":"`+address+`"}`); !r.IsError || !strings.Contains(r.Text, "no address of a web page") {
			t.Errorf("%s: %s", address, r.Text)
		}
	}
	for name, told := range map[string]string{
		"File": "file:///etc/passwd", "Chrome": "chrome://version", "Source": "view-source:file:///etc/passwd", "Window": "file:///proc/self/environ",
		"Frame": "file:///etc/hosts", "Data": "data URL: data:text/html,x", "Redirect": "what GET http://bank.example/to-file leads to", "Script": "",
	} {
		text := s.ok(t, `{"action":"open","url":"http://bank.example/trap"}`)
		after, tabs := s.do(t, `{"action":"click","ref":"`+refOf(t, text, `button "`+name+`"`)+`"}`).Text, s.ok(t, `{"action":"tabs"}`)
		if strings.Contains(after, "root:") || strings.Contains(tabs, `"file:`) || strings.Contains(tabs, `"chrome:`) {
			t.Errorf("%s: %s%s", name, after, tabs)
		}
		if told != "" {
			wants(t, after, `refused, because it is not the web: "`+told)
		}
		s.ok(t, `{"action":"close"}`)
	}
}

// attackUploads (9): only files of the workspace are given to a page, by the tool as by
// programs that attach.
func attackUploads(t *testing.T, s *attackSite) {
	text := s.ok(t, `{"action":"open","url":"http://bank.example/files"}`)
	name := s.started(t).Box.Name
	sh(t, s.box.Sandbox(), "ln -sfn /etc/passwd /workspace/link")
	for _, wrong := range []string{"/etc/passwd", "../../etc/passwd", "/proc/1/environ", "link", "/tmp/profile/Default/Cookies"} {
		if r := s.do(t, `{"action":"upload","ref":"`+refOf(t, text, `button "Choose`)+`","paths":["`+wrong+`"]}`); !r.IsError {
			t.Errorf("%s: %s", wrong, r.Text)
		}
		if s.app.Browsers.IsStaged(name, wrong) {
			t.Errorf("%s may be chosen by programs that attach", wrong)
		}
	}
	s.ok(t, `{"action":"close"}`)
}

// attackText (11): what a page says cannot look like the words of the tool.
func attackText(t *testing.T, s *attackSite) {
	text := s.ok(t, `{"action":"open","url":"http://bank.example/traps"}`)
	_, content, _ := strings.Cut(text, "<page-content ")
	if strings.Count(content, "[ref=e7]") > 1 || strings.Contains(content, "click [ref=e7]") || strings.ContainsAny(text, "\a\u202e") || len(text) > browser.MaxSnapshot+2000 {
		t.Errorf("%d bytes: %.500s", len(text), text)
	}
	wants(t, text, "lines are not shown", "(ref=e7]")
	s.ok(t, `{"action":"close"}`)
}

// attackPopups (12): a page opens no more tabs than the limit.
func attackPopups(t *testing.T, s *attackSite) {
	text := s.ok(t, `{"action":"open","url":"http://bank.example/second"}`)
	s.do(t, `{"action":"click","ref":"`+refOf(t, text, `button "Popups"`)+`"}`)
	s.ok(t, `{"action":"wait","ms":500}`)
	if n := strings.Count(s.ok(t, `{"action":"tabs"}`), "http://"); n > browser.MaxTabs {
		t.Errorf("%d tabs", n)
	}
}
