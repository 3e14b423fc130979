package linux_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/sandboxtest"
)

// The suite of every runtime, with the real guest, on the host's own programs.
func TestSuite(t *testing.T) { sandboxtest.Run(t, subject()) }

func subject() sandboxtest.Subject {
	return sandboxtest.Subject{Image: rootfs.HostName, Workdir: "/workspace", Walls: true, Unlimited: unlimited(), Open: open, Retag: retag}
}

func open(t *testing.T, stateDir string) sandbox.Runtime {
	t.Helper()
	roots, err := rootfs.Open(filepath.Join(stateDir, "images"), rootfs.Options{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := linux.New(linux.Options{
		StateDir: stateDir, Installation: "suite-" + filepath.Base(stateDir), Roots: roots,
		Guest: func(string) (*guestbin.Guest, error) { return guestOf(guestProgram(t)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// retag gives an image of the host's programs a layer of its own, under the name ref.
func retag(t *testing.T, stateDir, ref string, second bool) {
	t.Helper()
	store, err := rootfs.Open(filepath.Join(stateDir, "images"), rootfs.Options{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"second": strconv.FormatBool(second)}
	var empty bytes.Buffer
	if err := tar.NewWriter(&empty).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.AddLayer(t.Context(), &empty, rootfs.LayerOptions{Base: rootfs.HostName, Names: []string{ref}, Source: "a test", Labels: labels}); err != nil {
		t.Fatal(err)
	}
}

// unlimited reports whether limits are left out: for a user who is to be without
// them, and, unless all is tested, for one who happens to be.
func unlimited() bool {
	return os.Getenv(unlimitedVariable) != "" || os.Getenv(need.All) == "" && grouptest.Missing() != nil
}
