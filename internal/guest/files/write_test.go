package files

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/guest/maxprocs"
	"github.com/atoll-run/atoll/internal/wire"
)

// answers is the stream of a call: it counts the answers, and how often a file was
// open when one was sent.
type answers struct {
	net.Conn
	file       string
	sent, open int
}

func (a *answers) Write(b []byte) (int, error) {
	a.sent++
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == a.file {
			a.open++
		}
	}
	return len(b), nil
}

// A host may execute a file as soon as it is told that it is written.
func TestWrittenFileIsClosedBeforeTheAnswer(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	host, guest := net.Pipe()
	defer guest.Close()
	go func() {
		defer host.Close()
		_ = wire.WriteFrame(host, wire.FrameDataEnd, nil)
	}()
	reader, stream := wire.NewReader(guest), &answers{file: filepath.Join(root, "program")}
	c := &Call{Stream: stream, Reader: reader, Content: reader.Data}
	f := &wire.File{RootedPath: wire.RootedPath{Root: wire.Text(root), Path: "program"}, Write: &wire.FileWrite{Mode: 0o755}}
	must(t, NewServer(maxprocs.NewLimiter()).Serve(c, wire.OpFileWrite, f))
	if stream.sent == 0 || stream.open != 0 {
		t.Errorf("%d answers, the file was open at %d", stream.sent, stream.open)
	}
}
