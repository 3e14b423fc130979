package machine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/wire"
)

// lie plays one operation. It gets the stream, or the direct connection.
type lie func(conn net.Conn, req *wire.Request)

// fileLiar plays a guest that lies about files, over streams, or if direct is
// set over direct connections.
func fileLiar(direct bool, play lie) liar {
	honest := func(conn net.Conn, req *wire.Request) {
		switch {
		case req.Op == wire.OpFileDirect && direct:
			_ = wire.WriteJSON(conn, wire.FrameResult, wire.Direct{Token: "token"})
		case req.Op == wire.OpFileDirect:
			_ = wire.WriteJSON(conn, wire.FrameError, wire.Fail(wire.CodeUnknownOp, ""))
		default:
			play(conn, req)
		}
	}
	streams := answeringSession(honest)
	return func(conn net.Conn) {
		hello, err := wire.ReadHello(conn)
		if err != nil || wire.WriteWelcome(conn, &wire.Welcome{Version: 1, Boot: "liar"}) != nil {
			return
		}
		if hello.Kind != wire.KindDirect {
			streams(conn)
			return
		}
		if req, err := wire.NewReader(conn).Request(); err == nil {
			play(conn, req)
		}
	}
}

// answeringSession is answering after the handshake.
func answeringSession(play lie) liar {
	return func(conn net.Conn) { serveStreams(conn, play) }
}

// frames plays fixed frames.
func frames(all ...[]byte) lie {
	return func(conn net.Conn, _ *wire.Request) { _, _ = conn.Write(bytes.Join(all, nil)) }
}

// thenFlood plays fixed frames and then one without end.
func thenFlood(last []byte, all ...[]byte) lie {
	return func(conn net.Conn, req *wire.Request) {
		frames(all...)(conn, req)
		flood(conn, last)
	}
}

func jsonFrame(kind wire.FrameType, v any) []byte {
	payload, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw(kind, uint32(len(payload)), string(payload))
}

func result(v any) []byte { return jsonFrame(wire.FrameResult, v) }

func data(s string) []byte { return raw(wire.FrameData, uint32(len(s)), s) }

var dataEnd = raw(wire.FrameDataEnd, 0, "")

// The operations of a files object, each to be lied to.
var fileCalls = map[string]func(ctx context.Context, f *guestfs.Files) error{
	"stat": func(ctx context.Context, f *guestfs.Files) error { return second(f.Stat(ctx, "/w/f")) },
	"read": func(ctx context.Context, f *guestfs.Files) error { return second(f.Read(ctx, "/w/f", nil)) },
	"range": func(ctx context.Context, f *guestfs.Files) error {
		return second(f.Read(ctx, "/w/f", &guestfs.ReadOptions{Offset: 5, Limit: 10}))
	},
	"write": func(ctx context.Context, f *guestfs.Files) error {
		return second(f.Write(ctx, "/w/f", []byte("x"), &guestfs.WriteOptions{Exclusive: true}))
	},
	"large": func(ctx context.Context, f *guestfs.Files) error {
		return second(f.WriteFrom(ctx, "/w/f", io.LimitReader(endless{}, 8<<20), nil))
	},
	"mkdir":  func(ctx context.Context, f *guestfs.Files) error { return f.Mkdir(ctx, "/w/d", nil) },
	"remove": func(ctx context.Context, f *guestfs.Files) error { return second(f.Remove(ctx, "/w/d", nil)) },
	"rename": func(ctx context.Context, f *guestfs.Files) error { return f.Rename(ctx, "/w/f", "/w/g", nil) },
	"copy":   func(ctx context.Context, f *guestfs.Files) error { return second(f.Copy(ctx, "/w/f", "/w/g", nil)) },
	"list": func(ctx context.Context, f *guestfs.Files) error {
		return second(f.List(ctx, "/w", &guestfs.ListOptions{Max: 100}))
	},
	"walk": func(ctx context.Context, f *guestfs.Files) error {
		return second(f.Walk(ctx, "/w", &guestfs.WalkOptions{Max: 100}, func(*guestfs.FileEntry) error { return nil }))
	},
	"search": func(ctx context.Context, f *guestfs.Files) error {
		return second(f.Search(ctx, "/w", &guestfs.SearchOptions{Pattern: "x", MaxMatches: 10, Context: 1}))
	},
	"watch": func(ctx context.Context, f *guestfs.Files) error {
		w, err := f.Watch(ctx, "/w", nil)
		if err != nil {
			return err
		}
		defer w.Close()
		for {
			if _, err := w.Next(); err != nil {
				return err
			}
		}
	},
	"pull": func(ctx context.Context, f *guestfs.Files) error {
		return second(f.ReadTar(ctx, "/w", io.Discard, &guestfs.TarOptions{Limits: guestfs.ScanLimits{Bytes: 1000, Entries: 5}}))
	},
	"push": func(ctx context.Context, f *guestfs.Files) error {
		return second(f.WriteTar(ctx, "/w", bytes.NewReader(emptyArchive), nil))
	},
}

var emptyArchive = make([]byte, 1024)

func stat(kind wire.FileKind, size int64) wire.FileStat { return wire.FileStat{Kind: kind, Size: size} }

func entry(path string) wire.FileEntry {
	return wire.FileEntry{Path: wire.Text(path), Kind: wire.KindFile}
}

func node(path string, kind wire.FileKind, size int64) []byte {
	return jsonFrame(wire.FrameNode, wire.FileNode{Path: wire.Text(path), Kind: kind, Size: size})
}

func match(path, text string) wire.FileMatch {
	return wire.FileMatch{Path: wire.Text(path), Line: 1, Column: 1, Text: wire.Text(text)}
}

// fileLies are lies by operation. Each makes the sandbox broken.
var fileLies = map[string]map[string]lie{
	"stat": {
		"unknown kind":   frames(result(stat("tape", 1))),
		"negative size":  frames(result(stat(wire.KindFile, -1))),
		"endless target": frames(result(wire.FileStat{Kind: wire.KindSymlink, Target: wire.Text(strings.Repeat("x", 5000))})),
		"long version":   frames(result(wire.FileStat{Kind: wire.KindFile, Version: strings.Repeat("v", 300)})),
	},
	"read": {
		"a directory":         frames(result(stat(wire.KindDir, 0)), dataEnd),
		"more than it has":    frames(result(stat(wire.KindFile, 3)), data("0123456789"), dataEnd),
		"endless":             thenFlood(data("spam"), result(stat(wire.KindFile, 10))),
		"offset beyond":       frames(result(wire.FileStat{Kind: wire.KindFile, Size: 3, Offset: 9}), dataEnd),
		"empty data frames":   thenFlood(raw(wire.FrameData, 0, ""), result(stat(wire.KindFile, 10))),
		"oversized frame":     frames(result(stat(wire.KindFile, 1<<40)), raw(wire.FrameData, 1<<31, "x")),
		"something in it":     frames(result(stat(wire.KindFile, 10)), jsonFrame(wire.FrameExit, wire.Exit{})),
		"end with a payload":  frames(result(stat(wire.KindFile, 10)), raw(wire.FrameDataEnd, 3, "end")),
		"data before anyhing": frames(data("early")),
	},
	"range": {
		"behind what was asked": frames(result(wire.FileStat{Kind: wire.KindFile, Size: 100, Offset: 50}), data("x"), dataEnd),
		"more than was asked":   frames(result(wire.FileStat{Kind: wire.KindFile, Size: 100, Offset: 5}), data(strings.Repeat("x", 11)), dataEnd),
	},
	"write": {
		"nonsense":     frames(raw(wire.FrameResult, 2, "[]")),
		"unknown kind": frames(result(wire.FileWritten{})),
		"data":         frames(data("x")),
	},
	"large": {
		"answer at once":    frames(result(wire.FileWritten{FileStat: stat(wire.KindFile, 1)})),
		"another frame":     frames(data("x")),
		"endless of others": thenFlood(raw(wire.FrameEvents, 2, "[]")),
	},
	"mkdir":  {"nonsense": frames(raw(wire.FrameResult, 1, "x"))},
	"rename": {"an array": frames(raw(wire.FrameResult, 2, "[]")), "data": frames(data("x"))},
	"remove": {
		"negative sum":     frames(result(wire.FileEnd{Files: -1})),
		"too many names":   frames(result(wire.FileEnd{Names: make([]wire.FileRefused, 17)})),
		"names elsewhere":  frames(result(wire.FileEnd{Names: []wire.FileRefused{{Path: "../x"}}})),
		"names with zeros": frames(result(wire.FileEnd{Names: []wire.FileRefused{{Path: "a\x00b"}}})),
	},
	"copy": {"negative bytes": frames(result(wire.FileEnd{Bytes: -1}))},
	"list": {
		"dot dot":       frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry("..")})),
		"slash":         frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry("a/b")})),
		"absolute":      frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry("/etc")})),
		"empty name":    frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry("")})),
		"zero byte":     frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry("a\x00")})),
		"long name":     frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry(strings.Repeat("n", 256))})),
		"twice":         frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry("a"), entry("a")})),
		"out of order":  frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry("b"), entry("a")})),
		"unknown kind":  frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{{Path: "a", Kind: "x"}})),
		"nothing":       thenFlood(raw(wire.FrameEntries, 2, "[]")),
		"too many":      endlessEntries,
		"no array":      frames(raw(wire.FrameEntries, 2, "{}")),
		"other results": frames(raw(wire.FrameMatches, 2, "[]")),
	},
	"walk": {
		"dot dot inside": frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry("a/../../b")})),
		"endless path":   frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry(strings.Repeat("d/", 3000) + "x")})),
		"negative size":  frames(jsonFrame(wire.FrameEntries, []wire.FileEntry{{Path: "a", Kind: wire.KindFile, Size: -1}})),
		"too many":       endlessEntries,
		"negative sum":   frames(result(wire.FileEnd{Dirs: -1})),
	},
	"search": {
		"elsewhere":         frames(jsonFrame(wire.FrameMatches, []wire.FileMatch{match("../../etc/passwd", "x")})),
		"line zero":         frames(jsonFrame(wire.FrameMatches, []wire.FileMatch{{Path: "a", Column: 1}})),
		"long line":         frames(jsonFrame(wire.FrameMatches, []wire.FileMatch{match("a", strings.Repeat("x", 501))})),
		"several lines":     frames(jsonFrame(wire.FrameMatches, []wire.FileMatch{match("a", "x\ny")})),
		"too much context":  frames(jsonFrame(wire.FrameMatches, []wire.FileMatch{{Path: "a", Line: 1, Column: 1, Before: []wire.Text{"a", "b"}}})),
		"long context":      frames(jsonFrame(wire.FrameMatches, []wire.FileMatch{{Path: "a", Line: 1, Column: 1, After: []wire.Text{wire.Text(strings.Repeat("x", 501))}}})),
		"too many":          thenFlood(jsonFrame(wire.FrameMatches, []wire.FileMatch{match("a", "x"), match("a", "x"), match("a", "x")})),
		"negative binaries": frames(result(wire.FileEnd{Binary: -1})),
	},
	"watch": {
		"event elsewhere": frames(raw(wire.FrameStarted, 2, "{}"), jsonFrame(wire.FrameEvents, []wire.FileEvent{{Path: "../x", What: "created"}})),
		"unknown event":   frames(raw(wire.FrameStarted, 2, "{}"), jsonFrame(wire.FrameEvents, []wire.FileEvent{{Path: "x", What: "eaten"}})),
		"no events":       frames(raw(wire.FrameStarted, 2, "{}"), raw(wire.FrameEvents, 2, "[]")),
		"too many events": frames(raw(wire.FrameStarted, 2, "{}"), jsonFrame(wire.FrameEvents, make([]wire.FileEvent, 1025))),
		"data":            frames(raw(wire.FrameStarted, 2, "{}"), data("x")),
	},
	"pull": {
		"escape":             frames(node(".", wire.KindDir, 0), node("../x", wire.KindFile, 0)),
		"absolute":           frames(node(".", wire.KindDir, 0), node("/etc/passwd", wire.KindFile, 0)),
		"below a file":       frames(node(".", wire.KindDir, 0), node("f", wire.KindFile, 0), dataEnd, node("f/g", wire.KindFile, 0)),
		"twice":              frames(node(".", wire.KindDir, 0), node("f", wire.KindFile, 0), dataEnd, node("f", wire.KindFile, 0)),
		"no root":            frames(node("f", wire.KindFile, 0)),
		"second root":        frames(node(".", wire.KindDir, 0), node(".", wire.KindDir, 0)),
		"unknown parent":     frames(node(".", wire.KindDir, 0), node("d/f", wire.KindFile, 0)),
		"a link":             frames(node(".", wire.KindDir, 0), node("l", wire.KindSymlink, 0)),
		"directory of bytes": frames(node(".", wire.KindDir, 5)),
		"negative size":      frames(node(".", wire.KindFile, -1)),
		"too large":          frames(node(".", wire.KindFile, 1001)),
		"longer than said":   frames(node(".", wire.KindFile, 2), data("xyz"), dataEnd),
		"too many": func(conn net.Conn, req *wire.Request) {
			frames(node(".", wire.KindDir, 0))(conn, req)
			for i := range 10 {
				_, _ = conn.Write(node(fmt.Sprint("d", i), wire.KindDir, 0))
			}
		},
	},
	"push": {"negative sum": frames(result(wire.FileEnd{Files: -1})), "data": frames(data("x"))},
}

// endlessEntries lists names in order, and never stops.
func endlessEntries(conn net.Conn, _ *wire.Request) {
	for i := 0; ; i++ {
		if _, err := conn.Write(jsonFrame(wire.FrameEntries, []wire.FileEntry{entry(fmt.Sprintf("f%09d", i))})); err != nil {
			return
		}
	}
}

// bothKinds runs a test with streams, and with direct connections.
func bothKinds(t *testing.T, f func(t *testing.T, direct bool)) {
	for name, direct := range map[string]bool{"stream": false, "direct": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, direct)
		})
	}
}

func TestLiesAboutFiles(t *testing.T) {
	for op, lies := range fileLies {
		for name, lie := range lies {
			t.Run(op+"/"+name, func(t *testing.T) {
				t.Parallel()
				bothKinds(t, func(t *testing.T, direct bool) {
					m := lying(t, fileLiar(direct, lie), nil)
					files, err := guestfs.New(m, []guestfs.Root{{Path: "/w"}})
					check(t, err)
					err = fileCalls[op](patience(t), files)
					wantErr(t, err, machine.ErrBroken)
					wantErr(t, m.Ping(patience(t)), machine.ErrBroken)
				})
			})
		}
	}
}

// TestGuestsThatLeaveInTheMiddle break every operation off, at once and after a
// first frame, with half a frame and with an unknown error.
func TestGuestsThatLeaveInTheMiddle(t *testing.T) {
	breaks := map[string]lie{
		"at once":    frames(),
		"half frame": frames(raw(wire.FrameResult, 1000, "{")),
		"half header": func(conn net.Conn, _ *wire.Request) {
			_, _ = conn.Write([]byte{byte(wire.FrameResult), 0})
		},
		"error": frames(jsonFrame(wire.FrameError, wire.Error{Code: "zzz\x1b", Message: "\x1b[31mouch"})),
	}
	for op, call := range fileCalls {
		for name, lie := range breaks {
			t.Run(op+"/"+name, func(t *testing.T) {
				t.Parallel()
				bothKinds(t, func(t *testing.T, direct bool) {
					m := lying(t, fileLiar(direct, lie), &machine.Options{MaxBreaks: 100})
					files, err := guestfs.New(m, []guestfs.Root{{Path: "/w"}})
					check(t, err)
					err = call(patience(t), files)
					if err == nil || strings.Contains(err.Error(), "\x1b") || name != "error" && !errors.Is(err, machine.ErrLost) {
						t.Errorf("%v", err)
					}
				})
			})
		}
	}
}

// TestStallingFiles cancels every operation on a guest that never answers.
func TestStallingFiles(t *testing.T) {
	stalls := map[string]lie{
		"silent":        func(conn net.Conn, _ *wire.Request) { _, _ = io.Copy(io.Discard, conn) },
		"reads nothing": func(conn net.Conn, _ *wire.Request) { time.Sleep(700 * time.Millisecond) },
		"begins a frame": func(conn net.Conn, _ *wire.Request) {
			_, _ = conn.Write([]byte{byte(wire.FrameResult), 0, 0})
			_, _ = io.Copy(io.Discard, conn)
		},
		"begins a result": func(conn net.Conn, _ *wire.Request) {
			_, _ = conn.Write(raw(wire.FrameResult, 100, "{"))
			_, _ = io.Copy(io.Discard, conn)
		},
	}
	for op, call := range fileCalls {
		for name, lie := range stalls {
			t.Run(op+"/"+name, func(t *testing.T) {
				t.Parallel()
				bothKinds(t, func(t *testing.T, direct bool) {
					m := lying(t, fileLiar(direct, lie), nil)
					files, err := guestfs.New(m, []guestfs.Root{{Path: "/w"}})
					check(t, err)
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					begin := time.Now()
					wantErr(t, call(ctx, files), context.DeadlineExceeded)
					if took := time.Since(begin); took > 10*time.Second { // it would wait for ever
						t.Errorf("took %v", took)
					}
				})
			})
		}
	}
}

// TestFilesHeldInTheMultiplexer has a guest announce data that never comes, so
// that the multiplexer's locks are held on this side.
func TestFilesHeldInTheMultiplexer(t *testing.T) {
	for op, call := range fileCalls {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			m := lying(t, greeted(func(conn net.Conn) {
				_, _ = conn.Write(mux(0, 2, 1, 1000))
				_, _ = io.Copy(io.Discard, conn)
			}), &machine.Options{MaxBreaks: 100})
			files, err := guestfs.New(m, []guestfs.Root{{Path: "/w"}})
			check(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			begin := time.Now()
			if err := call(ctx, files); err == nil {
				t.Error("it succeeded")
			}
			limit := 7 * time.Second // a call is answered, or its wire is closed
			if op == "remove" || op == "copy" {
				limit = 17 * time.Second // they may take that long
			}
			if took := time.Since(begin); took > limit {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestFloodingFilesAreBounded lets a guest send as much as it can while the host
// does not read, on every transfer that there can be.
func TestFloodingFilesAreBounded(t *testing.T) {
	bothKinds(t, func(t *testing.T, direct bool) {
		m := lying(t, fileLiar(direct, thenFlood(data(strings.Repeat("x", 60_000)), result(stat(wire.KindFile, 1<<50)))), nil)
		files, err := guestfs.New(m, []guestfs.Root{{Path: "/w"}})
		check(t, err)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range 32 {
			r, err := files.Open(patience(t), "/w/f", nil)
			check(t, err)
			defer r.Close()
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = files.Open(short, "/w/f", nil) // one too many waits
		wantErr(t, err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		runtime.GC()
		runtime.ReadMemStats(&after)
		grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		t.Logf("32 flooding files hold %d KiB", grown>>10)
		if grown > 64<<20 {
			t.Errorf("memory grew by %d bytes", grown)
		}
	})
}

// TestMemoryIsNotPromised: a file said to be large costs what has come of it.
func TestMemoryIsNotPromised(t *testing.T) {
	m := lying(t, fileLiar(true, frames(result(stat(wire.KindFile, 1<<60)), data("a little"))), &machine.Options{MaxBreaks: 1000})
	files, err := guestfs.New(m, []guestfs.Root{{Path: "/w"}})
	check(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const times = 20
	for range times {
		_, err = files.Read(patience(t), "/w/f", nil)
		wantErr(t, err, machine.ErrLost)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 6<<20 {
		t.Errorf("%d bytes each", each)
	}
}

func TestLiesAboutPorts(t *testing.T) {
	started := func(v any) []byte { return jsonFrame(wire.FrameStarted, v) }
	caller := wire.Caller{Port: 80, Peer: "127.0.0.1:1"}
	lies := map[string]lie{
		"another port":     frames(started(wire.Caller{Port: 81, Peer: "127.0.0.1:1"})),
		"from outside":     frames(started(wire.Caller{Port: 80, Peer: "8.8.8.8:1"})),
		"no address":       frames(started(wire.Caller{Port: 80, Peer: "\x1b[31m"})),
		"nonsense":         frames(raw(wire.FrameStarted, 1, "x")),
		"result instead":   frames(raw(wire.FrameResult, 2, "{}")),
		"odd data":         frames(started(caller), raw(wire.FrameEvents, 2, "[]")),
		"empty data":       thenFlood(raw(wire.FrameData, 0, ""), started(caller)),
		"endless data":     frames(started(caller), raw(wire.FrameData, 1<<30, "x")),
		"end with payload": frames(started(caller), raw(wire.FrameDataEnd, 1, "x")),
	}
	for name, lie := range lies {
		t.Run("dial/"+name, func(t *testing.T) {
			t.Parallel()
			m := lying(t, fileLiar(false, lie), nil)
			conn, err := m.Dial(patience(t), "tcp", 80)
			if err == nil {
				_, err = io.Copy(io.Discard, conn)
				conn.Close()
			}
			wantErr(t, err, machine.ErrBroken)
		})
		t.Run("accept/"+name, func(t *testing.T) {
			t.Parallel()
			m := lying(t, fileLiar(false, func(conn net.Conn, req *wire.Request) {
				if req.Op == wire.OpPortListen {
					_, _ = conn.Write(started(wire.Bound{IPv4: true}))
					_, _ = io.Copy(io.Discard, conn)
					return
				}
				lie(conn, req)
			}), nil)
			l, err := m.Listen(patience(t), 80, openPort(open))
			check(t, err)
			for err == nil {
				var conn net.Conn
				if conn, err = l.Accept(); err == nil {
					_, _ = io.Copy(io.Discard, conn)
					conn.Close()
				}
			}
			wantErr(t, err, machine.ErrBroken)
			check(t, l.Close())
		})
	}
}

// TestPortsThatAreNeverOpen: a guest that closes the port at once keeps the host
// idle.
func TestPortsThatAreNeverOpen(t *testing.T) {
	asked := make(chan struct{}, 10_000)
	m := lying(t, fileLiar(false, func(conn net.Conn, req *wire.Request) {
		asked <- struct{}{}
		if req.Op == wire.OpPortListen {
			_, _ = conn.Write(jsonFrame(wire.FrameStarted, wire.Bound{IPv4: true}))
		}
	}), &machine.Options{MaxBreaks: 1 << 30})
	l, err := m.Listen(patience(t), 80, nil)
	check(t, err)
	time.Sleep(500 * time.Millisecond)
	check(t, l.Close())
	if n := len(asked); n > 500 {
		t.Errorf("the guest was asked %d times in half a second", n)
	}
}
