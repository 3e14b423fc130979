package guest

import (
	"hash/maphash"
	"net"
	"path"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

const (
	// maxFileSlots is how many calls may wait for a file system at once. They
	// are not the slots of processes: a disk that hangs must not stop those.
	maxFileSlots = 4
	// maxWatches bounds the watches of all wires together. The kernel counts
	// them per user, and the sandbox's code is the same one.
	maxWatches = 32
	// maxReportedPath is how many bytes a path may have that is told to a host.
	maxReportedPath = wire.MaxPath
)

// fileServer is what the operations on files share.
type fileServer struct {
	slots   chan struct{}
	watches chan struct{}
	// openat2 says whether the kernel, and the sandbox's filter, have it.
	openat2 bool
	seed    maphash.Seed // of versions
	procs   *procsLimiter
}

func newFileServer(stride *procsLimiter) *fileServer {
	return &fileServer{
		slots: make(chan struct{}, maxFileSlots), watches: make(chan struct{}, maxWatches),
		openat2: haveOpenat2(), seed: maphash.MakeSeed(), procs: stride,
	}
}

// do runs f, which may wait for a file system, when there is a slot for it.
func (g *fileServer) do(f func() error) error {
	g.slots <- struct{}{}
	defer func() { <-g.slots }()
	return f()
}

// close closes a descriptor where no slot is held. Even that may wait for a file
// system.
func (g *fileServer) close(fd int) {
	_ = g.do(func() error { unix.Close(fd); return nil })
}

// fileCall is one operation on files that a host asked for.
type fileCall struct {
	files   *fileServer
	stream  net.Conn
	reader  *wire.Reader
	content func() *wire.Data // returns what the host sends after the request
	direct  bool              // stream is a connection of its own
}

// result answers the request.
func (c *fileCall) result(v any) error { return wire.WriteJSON(c.stream, wire.FrameResult, v) }

// isFileOp reports whether op is an operation on files.
func isFileOp(op wire.Op) bool { return fileOps[op] != nil }

// serve performs an operation on files. An error it returns goes to the host.
func (g *fileServer) serve(c *fileCall, op wire.Op, f *wire.File) error {
	c.files = g
	return fileOps[op](c, f)
}

// fileOps are the operations on files.
var fileOps = map[wire.Op]func(*fileCall, *wire.File) error{
	wire.OpFileStat:   (*fileCall).fileStat,
	wire.OpFileRead:   (*fileCall).fileRead,
	wire.OpFileWrite:  (*fileCall).fileWrite,
	wire.OpFileMkdir:  (*fileCall).fileMkdir,
	wire.OpFileRemove: (*fileCall).fileRemove,
	wire.OpFileRename: (*fileCall).fileRename,
	wire.OpFileCopy:   (*fileCall).fileCopy,
	wire.OpFileList:   (*fileCall).fileList,
	wire.OpFileWalk:   (*fileCall).fileWalk,
	wire.OpFileSearch: (*fileCall).fileSearch,
	wire.OpFileWatch:  (*fileCall).fileWatch,
	wire.OpFilePull:   (*fileCall).filePull,
	wire.OpFilePush:   (*fileCall).filePush,
}

// fileStat tells about a file of any kind.
func (c *fileCall) fileStat(f *wire.File) error {
	var stat *wire.FileStat
	err := c.files.do(func() error {
		spot, err := c.files.locate(&f.RootedPath)
		if err != nil {
			return err
		}
		defer spot.close()
		facts, err := spot.look()
		if err != nil {
			return err
		}
		stat = facts.stat()
		switch facts.kind() {
		case wire.KindFile:
			stat.Version = c.files.versionAt(spot, facts)
		case wire.KindSymlink:
			stat.Target = spot.target()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.result(stat)
}

// target reads a symbolic link, for people: it is followed by nobody.
func (s *location) target() wire.Text {
	buf := make([]byte, wire.MaxPath)
	n, err := unix.Readlinkat(s.dir.fd, s.name, buf)
	if err != nil {
		return ""
	}
	return wire.Text(buf[:n])
}

// stopWhenHostLeaves frees the call from waiting when the host leaves the stream, and
// then closes the channel it returns. From now on nothing else may read from
// the stream. On a direct wire the connection itself ends, and writing fails.
func (c *fileCall) stopWhenHostLeaves() <-chan struct{} {
	if c.direct {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = c.reader.Frame()
		_ = c.stream.SetDeadline(time.Unix(1, 0))
	}()
	return gone
}

// checkPlace refuses what no host should send: a root that is no clean absolute
// path, a path that could lead out of it.
func checkPlace(p *wire.RootedPath) error {
	root, rel := string(p.Root), string(p.Path)
	if !path.IsAbs(root) || path.Clean(root) != root || len(root) > wire.MaxPath || strings.IndexByte(root, 0) >= 0 {
		return wire.Fail(wire.CodeInvalid, "the root is not a clean absolute path")
	}
	if rel == "." {
		return nil
	}
	if rel == "" || len(rel) > wire.MaxPath || strings.IndexByte(rel, 0) >= 0 {
		return wire.Fail(wire.CodeInvalid, "the path is not a clean relative one")
	}
	for element := range strings.SplitSeq(rel, "/") {
		switch {
		case element == "..":
			return refuse(wire.CodeOutside)
		case element == "" || element == ".":
			return wire.Fail(wire.CodeInvalid, "the path is not a clean relative one")
		case len(element) > wire.MaxName:
			return wire.Fail(wire.CodeInvalid, "a name is longer than 255 bytes")
		}
	}
	return nil
}
