package machine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/wire"
)

// TestFilesLeaveNothing makes thousands of calls on files and ports, gives many
// of them up at a random moment and breaks wires under others. Then both sides
// are as they were: the host's goroutines are TestMain's affair.
func TestFilesLeaveNothing(t *testing.T) {
	calls := 3000
	if testing.Short() {
		calls = 300
	}
	c, m := cuttable(t, &machine.Options{MaxBreaks: 1 << 30})
	dir := c.guest.Dir
	files, err := guestfs.New(m, []guestfs.Root{{Path: dir}})
	check(t, err)
	_, err = files.Write(patience(t), dir+"/big", randomBytes(2<<20), nil)
	check(t, err)
	port := freePort(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx, port, openPort(open), func(c net.Conn) { _, _ = io.Copy(c, c) }) }()
	before, err := m.Info(patience(t))
	check(t, err)
	var wg sync.WaitGroup
	work := make(chan int)
	for range 12 {
		wg.Go(func() {
			for i := range work {
				(&fileWork{t, m, files, dir, port}).call(i)
			}
		})
	}
	for i := range calls {
		if i%200 == 100 {
			c.cut()
		}
		work <- i
	}
	close(work)
	wg.Wait()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	var after *wire.Info
	eventually(t, "the guest is as it was", func() bool {
		after, err = m.Info(patience(t))
		check(t, err)
		return after.Goroutines <= before.Goroutines+4 && after.Descriptors <= before.Descriptors+4
	})
	t.Logf("before %+v\nafter %+v", before, after)
	eventually(t, "no draft is left", func() bool {
		left, _ := filepath.Glob(dir + "/.atoll-tmp*")
		return len(left) == 0
	})
}

// fileWork is what calls on files and ports are made on.
type fileWork struct {
	*testing.T
	machine *machine.Machine
	files   *guestfs.Files
	dir     string
	port    int
}

// call does one of many things, for a random time at most.
func (w *fileWork) call(i int) {
	t, m, f, dir, port := w.T, w.machine, w.files, w.dir, w.port
	t.Helper()
	ctx := t.Context()
	if i%3 != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(20_000))*time.Microsecond)
		defer cancel()
	}
	name := fmt.Sprintf("%s/f%d", dir, i%20)
	calls := []func() error{
		func() error { return second(f.Read(ctx, dir+"/big", nil)) },
		func() error { return second(f.Write(ctx, name, []byte("small"), nil)) },
		func() error { return second(f.WriteFrom(ctx, name, io.LimitReader(endless{}, 1<<20), nil)) },
		func() error { return second(f.Stat(ctx, name)) },
		func() error { return second(f.List(ctx, dir, nil)) },
		func() error { return second(f.Search(ctx, dir, &guestfs.SearchOptions{Pattern: "small"})) },
		func() error { return second(f.Copy(ctx, dir+"/big", name, nil)) },
		func() error { return second(f.Remove(ctx, name, nil)) },
		func() error { return f.Rename(ctx, name, name+"r", nil) },
		func() error { return second(f.ReadTar(ctx, dir, io.Discard, &guestfs.TarOptions{SkipRefused: true})) },
		func() error {
			return second(f.WriteTar(ctx, dir+"/tar", archiveOf(t, file("a", 100_000)), &guestfs.TarOptions{MkdirAll: true}))
		},
		func() error {
			w, err := f.Watch(ctx, dir, nil)
			if err == nil {
				_ = w.Close()
			}
			return err
		},
		func() error {
			r, err := f.Open(ctx, dir+"/big", nil)
			if err == nil {
				_, err = r.Read(make([]byte, 10))
				_ = r.Close()
			}
			return err
		},
		func() error {
			conn, err := m.Dial(ctx, "tcp", port)
			if err == nil {
				_, _ = conn.Write(make([]byte, 1000))
				_ = conn.Close()
			}
			return err
		},
	}
	err := calls[i%len(calls)]()
	for _, fine := range []error{
		nil, context.DeadlineExceeded, context.Canceled, os.ErrNotExist, machine.ErrLost, machine.ErrChanged, machine.ErrReset, machine.ErrRefused, machine.ErrBusy,
	} {
		if errors.Is(err, fine) {
			return
		}
	}
	t.Errorf("call %d: %v", i%len(calls), err)
}

// forksToTheLimit keeps the sandbox at its limit of processes. It waits where a fork
// fails: a hundred processes that try without a pause take all of the processors too,
// and then this is a test of the scheduler.
const forksToTheLimit = `import os, time
os.nice(19)
while True:
    try: os.fork()
    except OSError: time.sleep(0.05)
`

// TestFilesUnderAForkBomb works on files while there is no process number left:
// the guest must not need another thread.
func TestFilesUnderAForkBomb(t *testing.T) {
	g := machinetest.Start(t, &machinetest.Options{Pids: 100})
	m := g.Machine(t, nil)
	files, err := guestfs.New(m, []guestfs.Root{{Path: g.Dir}})
	check(t, err)
	bomb, err := m.Start(patience(t), &machine.Command{Argv: []string{"python3", "-c", forksToTheLimit}})
	check(t, err)
	eventually(t, "the sandbox is full", func() bool {
		_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"/bin/true"}})
		return errors.Is(err, machine.ErrExhausted)
	})
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			name := fmt.Sprintf("%s/f%d", g.Dir, i)
			for round := range 3 {
				// One of them waits for the disk, which may be busy with other things.
				if _, err := files.Write(patience(t), name, randomBytes(300_000), &guestfs.WriteOptions{Sync: round == 0}); err != nil {
					t.Error(err)
				}
				if _, err := files.Read(patience(t), name, nil); err != nil {
					t.Error(err)
				}
				if _, err := files.List(patience(t), g.Dir, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	check(t, m.Ping(patience(t)))
	check(t, m.End(patience(t), bomb, time.Millisecond))
}

// TestFilesWithoutDescriptors has no descriptors to spare, and more callers than
// there are.
func TestFilesWithoutDescriptors(t *testing.T) {
	g := machinetest.Start(t, &machinetest.Options{Prepare: "ulimit -Sn 40; ulimit -Hn 40"})
	m := g.Machine(t, nil)
	files, err := guestfs.New(m, []guestfs.Root{{Path: g.Dir}})
	check(t, err)
	check(t, files.Mkdir(patience(t), g.Dir+"/d/"+strings.Repeat("d/", 60)+"e", &guestfs.MkdirOptions{Parents: true}))
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			_, err := files.Walk(patience(t), g.Dir, nil, func(*guestfs.FileEntry) error { return nil })
			if err != nil && !errors.Is(err, machine.ErrExhausted) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	eventually(t, "it works again", func() bool {
		_, err := files.Write(patience(t), g.Dir+"/f", []byte("x"), nil)
		return err == nil
	})
}

// TestFilesLeaveTheGuestSmall moves much, and looks at the guest's memory.
func TestFilesLeaveTheGuestSmall(t *testing.T) {
	w := newWorkplace(t, "")
	data := randomBytes(16 << 20)
	check(t, w.machine.Ping(patience(t)))
	t.Logf("fresh: %+v", memory(t, w.guest))
	for range 16 {
		_, err := w.files.Write(patience(t), w.at("f"), data, nil)
		check(t, err)
		_, err = w.files.Read(patience(t), w.at("f"), nil)
		check(t, err)
	}
	for i := range 2000 {
		w.put(fmt.Sprintf("many/%d", i), "some text\n")
	}
	_, err := w.files.Search(patience(t), w.dir, &guestfs.SearchOptions{Pattern: "t", MaxMatches: 10_000, MaxFileSize: 32 << 20})
	check(t, err)
	_, err = w.files.ReadTar(patience(t), w.dir, io.Discard, nil)
	check(t, err)
	t.Logf("then: %+v", memory(t, w.guest))
	const limit = 8 << 20
	eventually(t, "the guest is small", func() bool { return memory(t, w.guest)["VmRSS"] <= limit })
	t.Logf("later: %+v", memory(t, w.guest))
}

// TestDirectWires: one is admitted with a token, once, for its own client, and
// ends with the wire that it belongs to.
func TestDirectWires(t *testing.T) {
	c, m := cuttable(t, &machine.Options{MaxBreaks: 100})
	files, err := guestfs.New(m, []guestfs.Root{{Path: c.guest.Dir}})
	check(t, err)
	check(t, m.Ping(patience(t)))
	greet := func(client, token string) error {
		conn, err := c.guest.Dial(t.Context())
		check(t, err)
		defer conn.Close()
		_, err = wire.Handshake(conn, &wire.Hello{Min: 1, Max: 1, Client: client, Epoch: 99, Kind: wire.KindDirect, Token: token})
		return err
	}
	if err := greet("somebody", "guessed"); err == nil {
		t.Error("a guessed token was good")
	}
	if err := greet("somebody", "../"); err == nil {
		t.Error("a malformed token was good")
	}
	content := randomBytes(8 << 20)
	_, err = files.Write(patience(t), c.guest.Dir+"/f", content, nil)
	check(t, err)
	dialled := c.count()
	for range 20 { // the same connection serves them all
		got, err := files.Read(patience(t), c.guest.Dir+"/f", nil)
		check(t, err)
		if !bytes.Equal(got.Data, content) {
			t.Fatal("other content")
		}
		_, err = files.Read(patience(t), c.guest.Dir+"/none", nil) // an error does not end it
		wantErr(t, err, os.ErrNotExist)
		_, err = files.Write(patience(t), c.guest.Dir+"/none/x", []byte("x"), nil)
		wantErr(t, err, os.ErrNotExist)
	}
	if c.count() != dialled {
		t.Errorf("%d wires were dialled for 60 calls", c.count()-dialled)
	}
	r, err := files.Open(patience(t), c.guest.Dir+"/f", nil)
	check(t, err)
	defer r.Close()
	c.cut()
	if _, err := io.ReadAll(r); err == nil {
		t.Error("the direct wire outlived its parent")
	}
	got, err := files.Read(patience(t), c.guest.Dir+"/f", nil)
	check(t, err)
	if !bytes.Equal(got.Data, content) {
		t.Error("after the cut: other content")
	}
}

// TestMoreTransfersThanDirectWires: the rest take streams.
func TestMoreTransfersThanDirectWires(t *testing.T) {
	w := newWorkplace(t, "")
	w.put("f", strings.Repeat("x", 4<<20))
	var readers []*guestfs.FileReader
	for range 20 {
		r, err := w.files.Open(patience(t), w.at("f"), nil)
		check(t, err)
		readers = append(readers, r)
	}
	check(t, w.machine.Ping(patience(t)))
	for _, r := range readers {
		n, err := io.Copy(io.Discard, r)
		if n != 4<<20 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		check(t, r.Close())
	}
}
