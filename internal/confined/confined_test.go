package confined_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/confined"
)

// run runs a shell script and returns what it wrote.
func run(t *testing.T, script string, limits confined.Limits) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := confined.Run(t.Context(), &confined.Program{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Stdout: &out, Stdin: strings.NewReader("go\n"), Limits: limits})
	return out.String(), err
}

func TestItSeesNothing(t *testing.T) {
	t.Setenv("CANARY", "bird")
	out, err := run(t, "read x; env; ls /proc/self/fd; grep -c : /proc/net/dev; pwd", confined.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, "bird") || !strings.HasSuffix(out, "1\n/\n") { // one interface: its own loopback
		t.Errorf("it sees %s", out)
	}
}

func TestNoNetwork(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := strings.Cut(listener.Addr().String(), ":")
	if _, err := run(t, "read x; exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/"+port+"'", confined.Limits{}); err == nil {
		t.Error("it reached a port of the host")
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name, script string
		limits       confined.Limits
	}{
		{"memory", "read x; exec dd if=/dev/zero of=/dev/null bs=200M count=1", confined.Limits{Memory: 100 << 20}},
		{"file", "read x; exec head -c 2000000 /dev/zero > " + filepath.Join(dir, "file"), confined.Limits{File: 1 << 20}},
		{"processor", "read x; while :; do :; done", confined.Limits{CPU: time.Second}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := run(t, test.script, test.limits); err == nil {
				t.Error("it went beyond its limit")
			}
		})
	}
	t.Cleanup(func() {
		if info, err := os.Stat(filepath.Join(dir, "file")); err == nil && info.Size() > 1<<20 {
			t.Errorf("it wrote %d bytes", info.Size())
		}
	})
}

// What it complains is one short line that a terminal can show.
func TestComplaint(t *testing.T) {
	_, err := run(t, `read x; printf 'a\033[2J\nb\n' >&2; head -c 100000 /dev/zero | tr '\0' x >&2; exit 7`, confined.Limits{})
	failed, ok := errors.AsType[*confined.Error](err)
	if !ok || failed.Exit() != 7 || len(failed.Error()) > 4096 || strings.ContainsAny(failed.Error(), "\033\n") {
		t.Errorf("%v", err)
	}
}

// A cancelled context ends it and everything that it started.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	err := confined.Run(ctx, &confined.Program{Path: "/bin/sh", Args: []string{"-c", "sleep 600 & sleep 600"}, Stdout: &bytes.Buffer{}})
	if err == nil || time.Since(begun) > time.Minute {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
}
