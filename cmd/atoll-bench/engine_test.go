package main

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench"
	"github.com/atoll-run/atoll/internal/errhint"
)

func TestBenchmarksSayThatAnEngineIsMissing(t *testing.T) {
	nowhere := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	broken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(broken.Close)
	for _, host := range []string{nowhere, "nonsense", "tcp://" + strings.TrimPrefix(broken.URL, "http://")} {
		o := bench.Options{Getenv: func(name string) string { return map[string]string{"DOCKER_HOST": host}[name] }}
		for _, b := range bench.All() {
			if !b.NeedsEngine {
				continue
			}
			if _, err := b.Run(t.Context(), o); !errors.Is(err, bench.ErrNoEngine) || !strings.Contains(errhint.Of(err), "DOCKER_HOST") {
				t.Errorf("%s with %s: %v", b.Name, host, err)
			}
		}
	}
}

func TestAnEngineThatAnswersIsFound(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_ping" {
			http.NotFound(w, r)
		}
	})}}
	server.Start()
	t.Cleanup(server.Close)
	if err := bench.RequireEngine(t.Context(), "unix://"+socket); err != nil {
		t.Error(err)
	}
}
