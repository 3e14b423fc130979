package browsertest_test

import (
	"embed"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"sync"
)

//go:embed testdata/harbour
var harbourFiles embed.FS

var harbourPages = template.Must(template.ParseFS(harbourFiles, "testdata/harbour/pages.html"))

// harbourCode is what only the person knows.
const harbourCode = "739164"

// harbour is a site with a log-in, a check that wants a person, a form of two pages and a
// file to download.
type harbour struct {
	mu   sync.Mutex
	form url.Values // all that was sent
}

// got returns a field that was sent.
func (h *harbour) got(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.form.Get(name)
}

func (h *harbour) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		http.Redirect(w, r, h.take(w, r), http.StatusSeeOther)
		return
	}
	switch r.URL.Path {
	case "/style.css":
		http.ServeFileFS(w, r, harbourFiles, "testdata/harbour/style.css")
	case "/receipt.csv":
		w.Header().Set("Content-Disposition", `attachment; filename="receipt HB-2042.csv"`)
		fmt.Fprintf(w, "number,boat,nights\nHB-2042,%s,%s\n", h.got("boat"), h.got("nights"))
	default:
		h.show(w, r)
	}
}

// take keeps what a form sends and returns the page that follows it.
func (h *harbour) take(w http.ResponseWriter, r *http.Request) string {
	_ = r.ParseForm()
	h.mu.Lock()
	maps.Copy(h.form, r.PostForm)
	h.mu.Unlock()
	switch {
	case r.URL.Path == "/login" && r.FormValue("user") == "ann" && r.FormValue("password") == "sail":
		return "/verify"
	case r.URL.Path == "/verify" && r.FormValue("code") == harbourCode:
		http.SetCookie(w, &http.Cookie{Name: "in", Value: "yes"})
		return "/boat"
	case r.URL.Path == "/boat":
		return "/berth"
	case r.URL.Path == "/berth" && r.FormValue("rules") != "":
		return "/done"
	}
	return "/"
}

// show writes a page. What is behind the check is shown with its cookie only.
func (h *harbour) show(w http.ResponseWriter, r *http.Request) {
	_, err := r.Cookie("in")
	titles := map[string]string{"/": "Log in", "/verify": "Security check"}
	if err == nil {
		titles = map[string]string{"/boat": "Your boat", "/berth": "Your berth", "/done": "Done"}
	}
	title, ok := titles[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = harbourPages.ExecuteTemplate(w, r.URL.Path, map[string]any{"Title": title, "In": err == nil, "Form": h.form})
}
