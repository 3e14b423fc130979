// Package files serves the operations on files that hosts ask the guest for:
// reading, writing, listing, searching, watching, copying, and whole trees in and
// out.
//
// Code in the sandbox may change names at any time while an operation runs. So a
// path is resolved beneath its root by descriptors, without following a link or
// leaving the root's mount, and every file is examined again after it was opened.
package files

import (
	"hash/maphash"
	"net"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/maxprocs"
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// MaxSlots is how many calls may wait for a file system at once. Processes have
	// slots of their own, so that a disk that hangs does not stop them.
	MaxSlots = 4
	// maxWatches bounds the watches of all hosts together. The kernel counts them per
	// user, and the sandbox's own code has the same user.
	maxWatches = 32
	// maxReportedPath is the longest path, in bytes, that is reported to a host.
	maxReportedPath = wire.MaxPath
)

// Server performs operations on files. It is safe for concurrent use.
type Server struct {
	slots   chan struct{}
	watches chan struct{}
	// openat2 says whether the kernel has openat2 and the sandbox's filter allows it.
	openat2 bool
	seed    maphash.Seed // of versions
	procs   *maxprocs.Limiter
}

// NewServer returns a server that raises procs during large transfers.
func NewServer(procs *maxprocs.Limiter) *Server {
	return &Server{
		slots: make(chan struct{}, MaxSlots), watches: make(chan struct{}, maxWatches),
		openat2: haveOpenat2(), seed: maphash.MakeSeed(), procs: procs,
	}
}

// do waits for a slot and runs f, which may wait for a file system.
func (g *Server) do(f func() error) error {
	g.slots <- struct{}{}
	defer func() { <-g.slots }()
	return f()
}

// close closes a descriptor in a slot, as close too may wait for a file system. The
// caller holds no slot.
func (g *Server) close(fd int) {
	_ = g.do(func() error { unix.Close(fd); return nil })
}

// Call is one request of a host and the stream that it came on.
type Call struct {
	files   *Server
	Stream  net.Conn
	Reader  *wire.Reader
	Content func() *wire.Data // returns what the host sends after the request
	Direct  bool              // stream is a connection of its own
}

// result answers the request.
func (c *Call) result(v any) error { return wire.WriteJSON(c.Stream, wire.FrameResult, v) }

// Handles reports whether Serve performs op.
func Handles(op wire.Op) bool { return ops[op] != nil }

// Serve performs op. An error it returns is for the host.
func (g *Server) Serve(c *Call, op wire.Op, f *wire.File) error {
	c.files = g
	return ops[op](c, f)
}

// ops maps the operations to the methods that perform them.
var ops = map[wire.Op]func(*Call, *wire.File) error{
	wire.OpFileStat:   (*Call).stat,
	wire.OpFileRead:   (*Call).read,
	wire.OpFileWrite:  (*Call).write,
	wire.OpFileMkdir:  (*Call).mkdir,
	wire.OpFileRemove: (*Call).remove,
	wire.OpFileRename: (*Call).rename,
	wire.OpFileCopy:   (*Call).copy,
	wire.OpFileList:   (*Call).list,
	wire.OpFileWalk:   (*Call).walk,
	wire.OpFileSearch: (*Call).search,
	wire.OpFileWatch:  (*Call).watch,
	wire.OpFilePull:   (*Call).pull,
	wire.OpFilePush:   (*Call).push,
}

// stat answers with the attributes of a file of any kind.
func (c *Call) stat(f *wire.File) error {
	var stat *wire.FileStat
	err := c.files.do(func() error {
		loc, err := c.files.locate(&f.RootedPath)
		if err != nil {
			return err
		}
		defer loc.close()
		info, err := loc.stat()
		if err != nil {
			return err
		}
		stat = info.wireStat()
		switch info.kind() {
		case wire.KindFile:
			stat.Version = c.files.versionAt(loc, info)
		case wire.KindSymlink:
			stat.Target = loc.target()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.result(stat)
}

// target returns what a symbolic link points to, for display only.
func (s *location) target() wire.Text {
	buf := make([]byte, wire.MaxPath)
	n, err := unix.Readlinkat(s.dir.fd, s.name, buf)
	if err != nil {
		return ""
	}
	return wire.Text(buf[:n])
}

// stopWhenHostLeaves sets a deadline in the past on the stream and closes the channel
// it returns when the host closes the stream. From now on nothing else may read from
// the stream. It returns nil on a direct connection, where writing fails instead.
func (c *Call) stopWhenHostLeaves() <-chan struct{} {
	if c.Direct {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = c.Reader.Frame()
		_ = c.Stream.SetDeadline(time.Unix(1, 0))
	}()
	return gone
}

// checkPath refuses a root that is not a clean absolute path, and a path that is not a
// clean relative one or could lead out of the root.
func checkPath(p *wire.RootedPath) error {
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
