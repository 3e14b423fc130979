package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// hostilePages are pages of the bank that use up what they can.
var hostilePages = map[string]string{
	"/busy":    `<title>Busy</title><button onclick="for(;;);">Busy</button>`,
	"/memory":  `<title>Memory</title><button onclick="const a=[];for(;;)a.push(new Uint8Array(1<<26).fill(1))">Memory</button>`,
	"/workers": `<title>Workers</title><button onclick="const u=URL.createObjectURL(new Blob(['for(;;);']));for(let i=0;i<300;i++)new Worker(u)">Workers</button>`,
	"/ask":     `<title>Ask</title><button onclick="window.print(); addEventListener('beforeunload', e => { e.preventDefault(); return 'stay' }); for (let i = 0; i < 9; i++) alert(i)">Ask</button>`,
	"/long":    `<title>Long</title><button onclick="document.title='a\u001b[2J\u202eb'.repeat(99999); history.pushState(0, '', '/long?' + 'x'.repeat(1900000))">Long</button>`,
	"/links":   `<title>Links</title><button onclick="for (let i = 0; i < 30; i++) setTimeout(() => Object.assign(document.createElement('a'), {href: '/named?n=plain' + i, download: ''}).click(), 60 * i)">Many</button>`,
}

// answersHostile answers for a hostile page; false if it is another's.
func answersHostile(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.URL.Path == "/loop":
		http.Redirect(w, r, "/loop?"+strconv.Itoa(len(r.URL.RawQuery)), http.StatusFound)
	case r.URL.Path == "/named":
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="file"; filename*=UTF-8''`+url.PathEscape(r.FormValue("n")))
		size, _ := strconv.Atoi(r.FormValue("size"))
		fmt.Fprint(w, "data", strings.Repeat("x", size))
	case hostilePages[r.URL.Path] != "":
		fmt.Fprint(w, "<!doctype html>", hostilePages[r.URL.Path])
	default:
		return false
	}
	return true
}

// press opens a hostile page and clicks its button.
func (s *toolSite) press(t *testing.T, at, button string) string {
	t.Helper()
	text := s.ok(t, `{"action":"open","url":"http://bank.example`+at+`"}`)
	return s.do(t, `{"action":"click","ref":"`+refOf(t, text, `button "`+button+`"`)+`"}`).Text
}

// works wants that the browser opens a page after an attack.
func (s *toolSite) works(t *testing.T) {
	t.Helper()
	wants(t, s.ok(t, `{"action":"open","url":"http://bank.example/"}`), `heading "Log in"`)
}

// attackRedirects (12): a page that leads to itself ends with an error.
func attackRedirects(t *testing.T, s *attackSite) {
	if r := s.do(t, `{"action":"open","url":"http://bank.example/loop"}`); !r.IsError || !strings.Contains(r.Text, "TOO_MANY_REDIRECTS") {
		t.Error(r.Text)
	}
}

// attackDialogs (12): a page that asks without end is answered, and left.
func attackDialogs(t *testing.T, s *attackSite) { wants(t, s.press(t, "/ask", "Ask"), "dialog alert") }

// attackWorkers (12): a page with hundreds of workers is closed.
func attackWorkers(t *testing.T, s *attackSite) {
	s.press(t, "/workers", "Workers")
	s.ok(t, `{"action":"close"}`)
}

// attackMemory (12): a page that uses all memory ends alone, or with its browser.
func attackMemory(t *testing.T, s *attackSite) {
	s.press(t, "/memory", "Memory")
	s.do(t, `{"action":"close"}`)
}

// attackAddresses (18): what the model is told of addresses and titles is bounded and
// printable.
func attackAddresses(t *testing.T, s *attackSite) {
	text := s.press(t, "/long", "Long") + s.ok(t, `{"action":"tabs"}`)
	if strings.ContainsAny(text, "\x1b\u202e") || len(text) > 30_000 {
		t.Errorf("%d bytes: %.500q", len(text), text)
	}
	s.do(t, `{"action":"close"}`)
}

// attackBusy (12): a call to a page whose script never ends ends with its caller's time, and
// the next page is shown.
func attackBusy(t *testing.T, s *attackSite) {
	text := s.ok(t, `{"action":"open","url":"http://bank.example/busy"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	r, err := s.box.Call(ctx, "browser", []byte(`{"action":"click","ref":"`+refOf(t, text, `button "Busy"`)+`"}`))
	if err == nil && !r.IsError {
		t.Errorf("the click ended: %s", r.Text)
	}
	s.do(t, `{"action":"close"}`)
}

// attackDownloads (10): files that pages offer are counted, bounded, named anew and never
// executable.
func attackDownloads(t *testing.T, s *attackSite) {
	s.ok(t, `{"action":"open","url":"http://bank.example/"}`)
	for _, name := range []string{"../../.bashrc", "CON", "a\u202egnp.exe", strings.Repeat("n", 300) + ".txt", "run.desktop"} {
		s.do(t, `{"action":"navigate","url":"http://bank.example/named?n=`+url.QueryEscape(name)+`"}`)
	}
	s.do(t, `{"action":"navigate","url":"http://bank.example/named?n=big&size=100000"}`)
	s.press(t, "/links", "Many")
	var found string
	awaitBrowser(t, func() bool {
		found = s.ok(t, `{"action":"downloads"}`)
		return strings.Count(found, "sha256") == 6
	})
	wants(t, found, "6 downloads", "larger than sandbox.browser.downloads.maxBytes", "programs and scripts are not put")
	for line := range strings.Lines(found) {
		_, at, kept := strings.Cut(strings.TrimSpace(line), ": media/inbound/")
		if kept && (strings.Contains(at, "\u202e") || strings.Contains(at, "..") || !strings.HasPrefix(path.Base(at), "input-") || len(path.Base(at)) > 255) {
			t.Errorf("put at %q", at)
		}
	}
	if out := sh(t, s.box.Sandbox(), `find /workspace/media/inbound -type f -perm /111; find /workspace -name '.bashrc' -o -name '*.desktop' -o -name '*.exe'`); out != "" {
		t.Errorf("in the workspace: %s", out)
	}
}

// attackScripts (16): with evaluate switched off nothing that the model says runs in a
// page, also not by the address bar of a window.
func attackScripts(t *testing.T, s *attackSite) {
	s.works(t)
	for _, args := range []string{
		`{"action":"evaluate","expression":"document.title='owned'"}`, `{"action":"navigate","url":"javascript:document.title='owned'"}`,
		`{"action":"navigate","url":" JavaScript:document.title='owned'"}`, `{"action":"open","url":"data:text/html,<script>document.title='owned'</script>"}`,
	} {
		if r := s.do(t, args); !r.IsError {
			t.Errorf("%s: %s", args, r.Text)
		}
	}
	text := s.ok(t, `{"action":"snapshot"}`)
	s.do(t, `{"action":"press","key":"Control+l"}`)
	s.do(t, `{"action":"type","ref":"`+refOf(t, text, `textbox "User"`)+`","text":"javascript:document.title='owned'"}`)
	s.do(t, `{"action":"press","key":"Enter"}`)
	if tabs := s.ok(t, `{"action":"tabs"}`); strings.Contains(tabs, "owned") {
		t.Error(tabs)
	}
}

// browse starts the browser of the session, says so, and kills its process.
func (o *order) browse(ctx context.Context, a *app.App) error {
	used, err := a.Browsers.Use(provide.Subject{SessionKey: o.Session})
	if err != nil {
		return err
	}
	b, err := used.Browser(ctx)
	if err != nil {
		return err
	}
	if _, err := b.NewPage(ctx); err != nil {
		return err
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// TestBrowserAsks: with egress.mode ask a name without a rule is asked about, and not
// reached meanwhile.
func TestBrowserAsks(t *testing.T) {
	s := newToolSiteWith(t, func(s *toolSite) { s.set("agents.defaults.sandbox.egress.mode", "ask") })
	s.works(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.box.Call(ctx, "browser", []byte(`{"action":"open","url":"http://other.example/"}`)) // it is not waited for
	}()
	awaitBrowser(t, func() bool {
		open, err := s.app.Commits.Approvals().List(t.Context(), approval.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		return len(open) == 1 && strings.Contains(open[0].Summary+open[0].Evidence, "other.example")
	})
	cancel()
	<-done
	for _, to := range s.net.Asked() {
		if to != "bank.example:80" {
			t.Errorf("reached: %s", to)
		}
	}
}
