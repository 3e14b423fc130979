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

// TestAttackBrowserLimits: what pages use up is bounded, told, and leaves a browser that
// works.
func TestAttackBrowserLimits(t *testing.T) {
	s := newToolSiteWith(t, func(s *toolSite) {
		s.set("agents.defaults.sandbox.browser.downloads.maxFiles", 6)
		s.set("agents.defaults.sandbox.browser.downloads.maxBytes", "4k")
		s.set("agents.defaults.sandbox.browser.memory", "768m")
	})
	t.Run("10 names and sizes", func(t *testing.T) { testDownloadNames(t, s) })
	t.Run("12 redirects", func(t *testing.T) {
		if r := s.do(t, `{"action":"open","url":"http://bank.example/loop"}`); !r.IsError || !strings.Contains(r.Text, "TOO_MANY_REDIRECTS") {
			t.Error(r.Text)
		}
		s.works(t)
	})
	t.Run("12 dialogs", func(t *testing.T) {
		wants(t, s.press(t, "/ask", "Ask"), "dialog alert")
		s.works(t)
	})
	t.Run("12 workers", func(t *testing.T) { s.press(t, "/workers", "Workers"); s.ok(t, `{"action":"close"}`); s.works(t) })
	t.Run("12 a script without end", func(t *testing.T) { testBusyPage(t, s) })
	t.Run("12 memory", func(t *testing.T) { s.press(t, "/memory", "Memory"); s.do(t, `{"action":"close"}`); s.works(t) })
	t.Run("16 scripts", func(t *testing.T) { testNoScripts(t, s) })
	t.Run("18 addresses and titles", func(t *testing.T) {
		text := s.press(t, "/long", "Long") + s.ok(t, `{"action":"tabs"}`)
		if strings.ContainsAny(text, "\x1b\u202e") || len(text) > 30_000 {
			t.Errorf("%d bytes: %.500q", len(text), text)
		}
		s.works(t)
	})
}

// testBusyPage: a call to a page whose script never ends ends with its caller's time, and
// the next page is shown.
func testBusyPage(t *testing.T, s *toolSite) {
	text := s.ok(t, `{"action":"open","url":"http://bank.example/busy"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	r, err := s.box.Call(ctx, "browser", []byte(`{"action":"click","ref":"`+refOf(t, text, `button "Busy"`)+`"}`))
	if err == nil && !r.IsError {
		t.Errorf("the click ended: %s", r.Text)
	}
	s.do(t, `{"action":"close"}`)
	s.works(t)
}

func testDownloadNames(t *testing.T, s *toolSite) {
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

// testNoScripts: with evaluate switched off nothing that the model says runs in a page.
func testNoScripts(t *testing.T, s *toolSite) {
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

// TestAttackBrowser14_Killed: whenever the process that starts a browser is killed, the
// next one has a browser that works, in the only sandbox that there is.
func TestAttackBrowser14_Killed(t *testing.T) {
	s, a := newBrowsers(t, func(*site) {})
	for _, step := range []string{"after intent", "after create", "after start", "before ready", ""} {
		s.die(s.process(order{Session: session("killed").SessionKey, Browser: true, DieAt: step}))
		used := useBrowser(t, a, session("killed"))
		if said := evaluateAt(t, used, "document.title"); !strings.Contains(said, "Shop") {
			t.Errorf("after %q: %s", step, said)
		}
		b := startBrowser(t, used)
		if n := sh(t, b.Box, `n=0; for p in /proc/[0-9]*; do case "$(cat $p/cmdline 2>/dev/null | tr '\0' ' ')" in *"--type="*) ;; *"--remote-debugging-port="*"about:blank"*) n=$((n+1));; esac; done; echo $n`); n != "1" {
			t.Errorf("after %q: %s browsers run", step, n)
		}
		if rows := s.rows(a); len(rows) != 1 {
			t.Errorf("after %q: %d sandboxes", step, len(rows))
		}
		if err := used.Stop(); err != nil {
			t.Fatal(err)
		}
		if step != "" {
			if err := a.Manager.ForceRemove(t.Context(), b.Box.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
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
