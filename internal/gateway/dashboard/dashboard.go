// Package dashboard serves the gateway's web pages: static files that are the same for
// everybody. What they show they ask of the HTTP interface, with the log-in of the
// person who looks. The sources are in web/.
package dashboard

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// Prefix is the path below which the pages are.
const Prefix = "/ui/"

// built holds the output of the build in web/, each file compressed.
//
//go:embed dist
var built embed.FS

// Serves reports whether a path is one of the dashboard.
func Serves(urlPath string) bool {
	return urlPath == strings.TrimSuffix(Prefix, "/") || strings.HasPrefix(urlPath, Prefix)
}

// file is one file of the pages.
type file struct {
	compressed  []byte
	contentType string
	immutable   bool // its name has a hash of its content
}

// Handler serves the pages and passes every other request on.
type Handler struct {
	files map[string]file // by the path below Prefix
	next  http.Handler
}

// New returns the handler of the embedded pages.
func New(next http.Handler) (*Handler, error) {
	h := &Handler{files: map[string]file{}, next: next}
	return h, fs.WalkDir(built, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := built.ReadFile(name)
		if err != nil {
			return err
		}
		plain := strings.TrimSuffix(strings.TrimPrefix(name, "dist/"), ".gz")
		h.files[plain] = file{compressed: data, contentType: contentType(plain), immutable: strings.HasPrefix(plain, "assets/")}
		return nil
	})
}

// contentType returns the type of a file by its name, whatever this machine says.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/" && wantsPage(r), r.URL.Path == strings.TrimSuffix(Prefix, "/"):
		http.Redirect(w, r, Prefix, http.StatusSeeOther)
	case !Serves(r.URL.Path):
		h.next.ServeHTTP(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this path takes GET", http.StatusMethodNotAllowed)
	default:
		h.serve(w, r)
	}
}

// wantsPage reports whether a web browser opens the address.
func wantsPage(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// serve answers with a file, by its exact name.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	if name == "" {
		name = "index.html"
	}
	f, ok := h.files[name]
	if !ok {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	setHeaders(w.Header(), &f)
	if name == terminalPage {
		w.Header().Set("Content-Security-Policy", terminalPolicy)
	}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(f.compressed)))
		_, _ = w.Write(f.compressed) // the client may be gone
		return
	}
	plain, err := gzip.NewReader(bytes.NewReader(f.compressed))
	if err != nil {
		http.Error(w, "the page cannot be read", http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(w, plain) //nolint:gosec // our own file, and the client may be gone
}

// policy lets a page load nothing from elsewhere, run no script of its text and be
// shown in no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// terminalPage is the document of terminals. The library that shows them writes styles
// into it, so its policy lets it; it has no text of others but on the terminal's screen.
const terminalPage = "terminal.html"

var terminalPolicy = strings.Replace(policy, "style-src 'self'", "style-src 'self' 'unsafe-inline'", 1)

// setHeaders sets the headers of a file.
func setHeaders(h http.Header, f *file) {
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), usb=()")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if f.immutable {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
}
