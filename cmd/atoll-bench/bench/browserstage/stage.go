// Package browserstage measures browsers in sandboxes beside the same program on the host,
// and beside Playwright.
package browserstage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
)

const (
	// pageAddress is the page that is loaded: it asks for pageParts pictures.
	pageAddress = "https://page.example/"
	pageParts   = 20
	// serverDelay is how long the web server takes for each answer.
	serverDelay = 20 * time.Millisecond
)

// stage is an installation with a web site. Close it.
type stage struct {
	dir  string
	app  *app.App
	net  *internettest.Internet
	undo []func() error
}

// open opens an installation whose browsers reach the site.
func open(ctx context.Context) (s *stage, err error) {
	s = &stage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "atoll"); err != nil {
		return s, err
	}
	s.later(func() error { return os.RemoveAll(s.dir) })
	if s.net, err = internettest.Start(http.HandlerFunc(answer)); err != nil {
		return s, err
	}
	s.later(s.net.Close)
	file := filepath.Join(s.dir, "atoll.json5")
	text := fmt.Sprintf(`{tools: {sandbox: {tools: {alsoAllow: ["browser"]}}}, agents: {defaults: {workspace: %q, sandbox: {mode: "all", scope: "session", backend: "linux",
		docker: {image: "host"}, browser: {enabled: true, dangerouslyIgnoreCertificates: true}, egress: {mode: "enforce", allow: ["page.example"], upstream: %q}}}}}`, filepath.Join(s.dir, "agent"), s.net.Proxy)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return s, err
	}
	env := map[string]string{"ATOLL_STATE_DIR": filepath.Join(s.dir, "state"), "HOME": s.dir, "DOCKER_HOST": "unix:///nowhere", "CONTAINER_HOST": "unix:///nowhere"}
	if s.app, err = app.Open(ctx, provide.LoadOptions{Getenv: func(name string) string { return env[name] }, ConfigPath: file}); err != nil {
		return s, err
	}
	s.later(func() error { s.app.Close(); return nil })
	s.later(func() error { return s.remove(context.WithoutCancel(ctx)) })
	return s, nil
}

func (s *stage) later(undo func() error) { s.undo = append(s.undo, undo) }

// Close ends all of it, the last first.
func (s *stage) Close() error {
	var problems []error
	for _, undo := range slices.Backward(s.undo) {
		problems = append(problems, undo())
	}
	return errors.Join(problems...)
}

// remove removes all sandboxes.
func (s *stage) remove(ctx context.Context) error {
	problems := []error{s.app.Browsers.Close()}
	all, err := s.app.Registry.List(ctx, 0)
	for _, e := range all {
		problems = append(problems, s.app.Manager.ForceRemove(ctx, e.ContainerName))
	}
	return errors.Join(append(problems, err)...)
}

// answer answers as a web site: a page, or one of its pictures.
func answer(w http.ResponseWriter, r *http.Request) {
	time.Sleep(serverDelay)
	w.Header().Set("Cache-Control", "no-store")
	if r.URL.Path != "/" {
		w.Header().Set("Content-Type", "image/svg+xml")
		fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40"/></svg>`)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprint(w, `<!doctype html><title>Page</title><button onclick="this.textContent = 'Clicked ' + ++clicks">Click</button><script>let clicks = 0</script>`)
	for i := range pageParts {
		fmt.Fprintf(w, `<img src="/%d.svg">`, i)
	}
}

// subject is the session of a number.
func subject(n int) provide.Subject {
	return provide.Subject{SessionKey: fmt.Sprintf("agent:main:bench%d", n)}
}

// use returns the running browser of a session, with what ends its use.
func (s *stage) use(ctx context.Context, n int) (*browsers.Started, func(), error) {
	used, err := s.app.Browsers.Use(subject(n))
	if err != nil {
		return nil, nil, err
	}
	b, err := used.Browser(ctx)
	if err != nil {
		used.Release()
		return nil, nil, err
	}
	return b, used.Release, nil
}
