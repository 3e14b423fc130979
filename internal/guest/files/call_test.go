package files

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/maxprocs"
	"github.com/atoll-run/atoll/internal/wire"
)

// perform has a guest perform one operation, with content sent after it, and
// returns all that it answers.
func perform(tb testing.TB, g *Server, req *wire.Request, content []byte) []byte {
	tb.Helper()
	begin := time.Now()
	host, guest := net.Pipe()
	performed := make(chan struct{})
	go func() {
		defer close(performed)
		defer guest.Close()
		reader := wire.NewReader(guest)
		c := &Call{Stream: guest, Reader: reader, Content: reader.Data}
		err := wire.WithPart(req.File, func(f *wire.File) error { return g.Serve(c, req.Op, f) })
		if err != nil {
			_ = guest.SetDeadline(time.Now().Add(time.Second))
			_ = wire.WriteJSON(guest, wire.FrameError, wire.AsError(err))
		}
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = host.Write(content)
		switch req.Op {
		case wire.OpFileWatch, wire.OpFileWrite, wire.OpFilePush: // they may wait for more, or for the end
			_ = host.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		}
	}()
	_ = host.SetReadDeadline(time.Now().Add(20 * time.Second))
	answer, err := io.ReadAll(host)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(begin.Add(15*time.Second)) {
		tb.Fatalf("%s: %v", req.Op, err)
	}
	host.Close()
	<-sent
	<-performed
	return answer
}

// FuzzFileRequests performs arbitrary requests. The guest must neither crash nor hang,
// and nothing outside the root may change.
func FuzzFileRequests(f *testing.F) {
	seeds := []string{
		`{"op":"file.stat","file":{"path":"a/f"}}`,
		`{"op":"file.read","file":{"path":"a/f","read":{"offset":-2,"limit":1}}}`,
		`{"op":"file.write","file":{"path":"a/n","write":{"mode":420,"exclusive":true,"mkdirAll":true,"ifVersion":"x+y"}}}`,
		`{"op":"file.mkdir","file":{"path":"d/e","change":{"mkdirAll":true}}}`,
		`{"op":"file.remove","file":{"path":"a","change":{"recursive":true},"scan":{"maxEntries":10,"maxDepth":5}}}`,
		`{"op":"file.rename","file":{"path":"a","to":{"path":"b"},"change":{"noReplace":true}}}`,
		`{"op":"file.copy","file":{"path":"a","to":{"path":"b"},"change":{"recursive":true},"scan":{"maxEntries":10,"maxDepth":5,"maxBytes":100}}}`,
		`{"op":"file.list","file":{"path":".","scan":{"maxEntries":1,"after":"a"}}}`,
		`{"op":"file.walk","file":{"path":".","scan":{"maxEntries":100,"maxDepth":9,"exclude":["*.x"]}}}`,
		`{"op":"file.search","file":{"path":".","scan":{"maxEntries":100,"maxDepth":9,"maxBytes":1000,"include":["**"]},"search":{"pattern":"in.","maxMatches":3,"maxLine":2,"context":2,"maxFileSize":100}}}`,
		`{"op":"file.watch","file":{"path":".","scan":{"maxEntries":2,"maxDepth":2,"recursive":true}}}`,
		`{"op":"file.pull","file":{"path":".","scan":{"maxEntries":100,"maxDepth":9,"maxBytes":1000,"skipRefused":true}}}`,
		`{"op":"file.push","file":{"path":".","scan":{"maxEntries":100,"maxDepth":9,"maxBytes":1000},"change":{"mkdirAll":true}}}`,
		`{"op":"file.read","file":{"path":"link/x","read":{}}}`, `{"op":"file.copy","file":{}}`, `{"op":"file.stat"}`,
	}
	end := string([]byte{byte(wire.FrameDataEnd), 0, 0, 0, 0})
	contents := []string{"", end, "\x20\x00\x00\x00\x02hi" + end, "\x25\x00\x00\x00\x1a" + `{"path":"p","kind":"dir"} ` + end,
		"\x25\x00\x00\x00\x24" + `{"path":"p/q","kind":"file","size":2}`[:36]}
	for i, seed := range seeds {
		f.Add([]byte(seed), []byte(contents[i%len(contents)]), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, request, content []byte, openat2 bool) {
		var req wire.Request
		if json.Unmarshal(request, &req) != nil || !Handles(req.Op) {
			return
		}
		root, outside := fuzzScene(t)
		if req.File != nil {
			req.File.Root = wire.Text(root)
			if req.File.To != nil {
				req.File.To.Root = wire.Text(root)
			}
			if req.File.Scan != nil {
				req.File.Scan.TimeMs = 1000
			}
		}
		g := NewServer(maxprocs.NewLimiter())
		g.openat2 = g.openat2 && openat2
		perform(t, g, &req, content)
		if got, err := os.ReadFile(outside + "/f"); err != nil || string(got) != "outside" {
			t.Errorf("outside: %q %v", got, err)
		}
		if names, _ := filepath.Glob(root + "/" + tempPrefix + "*"); len(names) > 0 {
			t.Errorf("left behind: %q", names)
		}
	})
}

// fuzzScene is small, because it is made anew for every input.
func fuzzScene(t *testing.T) (root, outside string) {
	t.Helper()
	dir := t.TempDir()
	root, outside = dir+"/root", dir+"/outside"
	must(t, os.MkdirAll(root+"/a/deep", 0o755))
	must(t, os.Mkdir(outside, 0o755))
	must(t, os.WriteFile(outside+"/f", []byte("outside"), 0o644))
	must(t, os.WriteFile(root+"/a/f", []byte("inside\nof it\n"), 0o644))
	must(t, os.Symlink(outside, root+"/link"))
	must(t, unix.Mkfifo(root+"/fifo", 0o644))
	return root, outside
}

// TestRacesWithoutOpenat2 swaps a directory for a link while it is passed, with
// both ways of passing it.
func TestRacesWithoutOpenat2(t *testing.T) {
	bothWays(t, func(t *testing.T, g *Server) {
		root, outside := fuzzScene(t)
		must(t, os.Symlink(outside, root+"/swap"))
		done := make(chan struct{})
		stop := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, root+"/a", unix.AT_FDCWD, root+"/swap", unix.RENAME_EXCHANGE)
				}
			}
		}()
		inside := 0
		for range 20_000 {
			s, err := g.locate(&wire.RootedPath{Root: wire.Text(root), Path: "a/f"})
			if err != nil {
				continue
			}
			fd, info, err := s.openRegular()
			s.close()
			if err != nil {
				continue
			}
			if info.size == int64(len("outside")) {
				t.Fatal("reached outside")
			}
			unix.Close(fd)
			inside++
		}
		close(stop)
		<-done
		if inside == 0 {
			t.Error("never got in")
		}
	})
}

// TestMountWithoutOpenat2AndStatx: kernels that know neither tell mounts apart
// by /proc.
func TestMountWithoutOpenat2AndStatx(t *testing.T) {
	root := scene(t)
	a, err := unix.Open(root, unix.O_PATH, 0)
	must(t, err)
	defer unix.Close(a)
	b, err := unix.Open(root+"/mnt", unix.O_PATH, 0)
	must(t, err)
	defer unix.Close(b)
	first, err := mountFromProc(a)
	must(t, err)
	second, err := mountFromProc(b)
	must(t, err)
	if first == second {
		t.Error("both on the same mount")
	}
	info, err := statAtOld(a, "mnt")
	must(t, err)
	if info.kind() != wire.KindDir || !info.mountIDIsUnknown {
		t.Errorf("%+v", info)
	}
}

func TestSlotsAreGivenBack(t *testing.T) {
	g := NewServer(maxprocs.NewLimiter())
	root, _ := fuzzScene(t)
	for range 3 * MaxSlots {
		perform(t, g, &wire.Request{Op: wire.OpFileStat, File: &wire.File{RootedPath: wire.RootedPath{Root: wire.Text(root), Path: "a/f"}}}, nil)
		perform(t, g, &wire.Request{Op: wire.OpFileStat, File: &wire.File{RootedPath: wire.RootedPath{Root: wire.Text(root), Path: "none"}}}, nil)
	}
	if len(g.slots) != 0 {
		t.Errorf("%d slots are taken", len(g.slots))
	}
}
