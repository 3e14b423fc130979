package hostpath

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func listenAt(t *testing.T, path string) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // the names of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A socket of the host is found however deep it lies, by any of its names, and
// only while a program waits on it.
func TestSocketsBelow(t *testing.T) {
	dir, elsewhere := shortDir(t), shortDir(t)
	deep := filepath.Join(dir, "a/b/c")
	mustDo(t, os.MkdirAll(deep, 0o755))
	if found, complete := (Disk{}).SocketsBelow(dir); len(found) > 0 || !complete {
		t.Errorf("an empty tree: %q, %v", found, complete)
	}
	own := filepath.Join(deep, "own.sock")
	listener := listenAt(t, own)
	listenAt(t, filepath.Join(elsewhere, "x.sock"))
	mustDo(t, os.Link(filepath.Join(elsewhere, "x.sock"), filepath.Join(dir, "other-name")))
	mustDo(t, os.Symlink(filepath.Join(elsewhere, "x.sock"), filepath.Join(dir, "link"))) // leads out, where no sandbox follows
	found, complete := Disk{}.SocketsBelow(dir)
	if want := []string{own, filepath.Join(dir, "other-name")}; !slices.Equal(found, want) || !complete {
		t.Errorf("got %q, %v, want %q", found, complete, want)
	}
	if got := (Disk{}).NamedSocketsBelow(dir); !slices.Equal(got, found) {
		t.Errorf("by name: %q, want %q", got, found)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	mustDo(t, listener.Close())
	if found, _ := (Disk{}).SocketsBelow(filepath.Join(dir, "a")); len(found) > 0 {
		t.Errorf("a file that nobody waits on: %q", found)
	}
}

func TestSocketsOfRelativeNames(t *testing.T) {
	dir := shortDir(t)
	mustDo(t, os.Mkdir(filepath.Join(dir, "a"), 0o755))
	t.Chdir(filepath.Join(dir, "a"))
	listenAt(t, "s")
	if got := (Disk{}).NamedSocketsBelow(dir); !slices.Equal(got, []string{filepath.Join(dir, "a/s")}) {
		t.Errorf("got %q", got)
	}
}

func TestSocketsOfDatagrams(t *testing.T) {
	dir := shortDir(t)
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "unixgram", filepath.Join(dir, "log"))
	mustDo(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	if found, _ := (Disk{}).SocketsBelow(dir); len(found) != 1 {
		t.Errorf("got %q", found)
	}
}

// Beyond the bounds a look is not complete, and still finds what is known by its
// name.
func TestSocketsBeyondTheBounds(t *testing.T) {
	deep, many := shortDir(t), shortDir(t)
	below := filepath.Join(deep, strings.Repeat("d/", MaxLookDepth+2))
	mustDo(t, os.MkdirAll(below, 0o755))
	listenAt(t, filepath.Join(below, "s"))
	for i := range MaxLookEntries + 1 {
		mustDo(t, os.WriteFile(filepath.Join(many, fmt.Sprint(i)), nil, 0o600))
	}
	mustDo(t, os.Mkdir(filepath.Join(many, "sub"), 0o755))
	listenAt(t, filepath.Join(many, "sub/s"))
	for _, dir := range []string{deep, many} {
		if found, complete := (Disk{}).SocketsBelow(dir); complete || len(found) != 1 {
			t.Errorf("%s: %q, complete %v", dir, found, complete)
		}
	}
}
