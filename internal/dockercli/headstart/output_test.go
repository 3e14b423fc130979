package headstart_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/dockercli/headstart"
	"github.com/atoll-run/atoll/internal/wire"
)

// sockets are a pair of which one has something to read, or is full.
func sockets(t *testing.T) (near, far *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	near, far = os.NewFile(uintptr(fds[0]), "near"), os.NewFile(uintptr(fds[1]), "far")
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return near, far
}

// fill writes to a file until it takes no more.
func fill(t *testing.T, f *os.File) {
	t.Helper()
	fd := int(f.Fd())
	check(t, unix.SetNonblock(fd, true))
	for _, size := range []int{4096, 1} {
		for {
			if _, err := unix.Write(fd, make([]byte, size)); err != nil {
				break
			}
		}
	}
	check(t, unix.SetNonblock(fd, false))
}

// TestNobodyKeepsItWaiting: output goes where there is room for it, and else to the
// whole program, all of it.
func TestNobodyKeepsItWaiting(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 256) // as much as a pipe takes at once
	pipe := func(t *testing.T) *os.File { return collect(t).to }
	file := func(t *testing.T) *os.File {
		f, err := os.Create(filepath.Join(t.TempDir(), "out"))
		check(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	for _, c := range []struct {
		name, text string
		to         func(t *testing.T) *os.File
		taken      bool
	}{
		{"a pipe", text, pipe, true},
		{"more than a pipe takes", text + "x", pipe, false},
		{"a full pipe", "x", func(t *testing.T) *os.File { f := pipe(t); fill(t, f); return f }, false},
		{"a pipe that nobody reads", "x", func(t *testing.T) *os.File { c := collect(t); _ = c.from.Close(); return c.to }, false},
		{"a file", text + "x", file, true},
		{"a socket", text + "x", func(t *testing.T) *os.File { near, _ := sockets(t); return near }, true},
		{"a full socket", "x", func(t *testing.T) *os.File { near, _ := sockets(t); fill(t, near); return near }, false},
		{"a device", "x", func(t *testing.T) *os.File {
			f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			check(t, err)
			t.Cleanup(func() { _ = f.Close() })
			return f
		}, false},
		{"nothing at all", "x", func(*testing.T) *os.File { return nil }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := &headstart.Call{}
			call.Streams(nil, c.to(t), nil)
			output, exit := frame(wire.FrameStdout, c.text), frame(wire.FrameExit, fmt.Sprintf(`{"code":0,"stdout":%d}`, len(c.text)))
			said, _, left := call.Understand([]byte(started + output + exit))
			want, wantLeft := headstart.End, started+exit
			if !c.taken {
				want, wantLeft = headstart.Unclear, started+output+exit
			}
			if said != want || string(left) != wantLeft {
				t.Errorf("says %v, leaves %d bytes of %d", said, len(left), len(started)+len(output)+len(exit))
			}
		})
	}
}

// streams are both ends of a connection that takes a part of what it has no room
// for.
func streams(t *testing.T) (near, far *os.File) {
	t.Helper()
	door, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	defer door.Close()
	caller, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", door.Addr().String())
	check(t, err)
	called, err := door.Accept()
	check(t, err)
	for conn, file := range map[net.Conn]**os.File{caller: &near, called: &far} {
		*file, err = conn.(*net.TCPConn).File()
		check(t, errors.Join(err, conn.Close()))
		t.Cleanup(func() { _ = (*file).Close() })
	}
	return near, far
}

// TestAPartIsTaken: what there is no room for stays a frame, and nothing is lost or
// said twice.
func TestAPartIsTaken(t *testing.T) {
	near, far := streams(t)
	text := strings.Repeat("0123456789abcdef", 450)
	exit := frame(wire.FrameExit, fmt.Sprintf(`{"code":0,"stdout":%d}`, len(text)))
	var sent, rest string
	for said := headstart.End; said == headstart.End; {
		call := &headstart.Call{}
		call.Streams(nil, near, nil)
		var left []byte
		said, _, left = call.Understand([]byte(started + frame(wire.FrameStdout, text) + exit))
		sent += text
		rest = strings.TrimSuffix(strings.TrimPrefix(string(left), started), exit)
	}
	rest = rest[wire.HeaderSize:]
	check(t, near.Close())
	passed, err := io.ReadAll(far)
	check(t, err)
	if string(passed)+rest != sent || len(rest) == len(text) {
		t.Errorf("%d bytes passed and %d left, of %d", len(passed), len(rest), len(sent))
	}
}
