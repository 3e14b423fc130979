package headstart_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/dockercli"
	"github.com/atoll-run/atoll/internal/dockercli/entry"
	"github.com/atoll-run/atoll/internal/dockercli/headstart"
	"github.com/atoll-run/atoll/internal/lease"
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	name = "some"
	id   = "abababababababababababababababababababababababababababababababab"
)

// lab is a state directory with one container, whose guest is the test.
type lab struct {
	*testing.T
	dir   string
	entry entry.Entry
	door  net.Listener
}

func newLab(t *testing.T) *lab {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // a socket's path is short
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &lab{T: t, dir: dir}
	check(t, os.MkdirAll(filepath.Join(dir, entry.RecordsDir, entry.IDsDir), 0o700))
	check(t, os.Symlink(name, filepath.Join(dir, entry.RecordsDir, entry.IDsDir, id)))
	_, err = lease.Open(filepath.Join(dir, entry.LeasesFile))
	check(t, err)
	socket := filepath.Join(dir, "guest.sock")
	l.door, err = (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	check(t, err)
	t.Cleanup(func() { _ = l.door.Close() })
	guest := dockercli.NewGuest(socket, os.Getpid(), "lease")
	l.entry = entry.Entry{
		ID: id, Name: name, Hostname: "host", Workdir: "/work", User: "0:0", Home: "/root", Process: "main", Attached: "false",
		Socket: guest.Socket, PID: strconv.Itoa(guest.PID), Birth: guest.Birth, Lease: guest.Lease,
		Place: strconv.FormatInt(lease.Place(guest.Lease), 10), Paused: "false", Env: "LANG=C" + entry.End + "PATH=/bin",
	}
	l.save()
	return l
}

// save writes the record down.
func (l *lab) save() {
	l.Helper()
	l.write(filepath.Join(entry.RecordsDir, name+entry.RecordKind), l.entry.Format()+"{}")
}

func (l *lab) write(path, text string) {
	l.Helper()
	check(l.T, os.WriteFile(filepath.Join(l.dir, path), []byte(text), 0o600))
}

// words are those of a line, in which spaces separate them, _ stands for a space,
// EMPTY for nothing and DIR for the lab's directory.
func (l *lab) words(line string) (args []string) {
	for field := range strings.FieldsSeq(line) {
		args = append(args, strings.NewReplacer("_", " ", "DIR", l.dir, "EMPTY", "").Replace(field))
	}
	return args
}

func (l *lab) environ() headstart.Vector {
	return headstart.NewVector("A=1", "ATOLL_STATE_DIR="+l.dir, "ATOLL_STATE_DIR=/nowhere", "HOME=/nowhere")
}

// asked is what a guest was asked for.
type asked struct {
	Hello *wire.Hello
	Exec  *wire.Exec
	conn  net.Conn
}

// serve answers the next command with frames.
func (l *lab) serve(frames ...string) <-chan *asked {
	heard := make(chan *asked, 1)
	go func() {
		defer close(heard)
		conn, err := l.door.Accept()
		if err != nil {
			return
		}
		a := &asked{conn: conn}
		if a.Hello, err = wire.Receive(conn); err != nil {
			l.Errorf("the greeting: %v", err)
			return
		}
		request, err := wire.NewReader(conn).Request()
		if err != nil {
			l.Errorf("the request: %v", err)
			return
		}
		a.Exec = request.Exec
		for _, frame := range frames {
			_, _ = conn.Write([]byte(frame))
		}
		heard <- a
	}()
	return heard
}

func frame(kind wire.FrameType, payload string) string {
	header := make([]byte, wire.HeaderSize)
	wire.PutHeader(header, kind, len(payload))
	return string(header) + payload
}

var (
	started = frame(wire.FrameStarted, `{"pid":7}`)
	success = frame(wire.FrameExit, `{"code":0}`)
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
