package machine_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/testkit/wiretest"
	"github.com/atoll-run/atoll/internal/wire"
)

// A guest is recorded when a new version of the protocol is about to replace its
// own, with a guest that was built from the last commit that spoke it:
//
//	go test ./internal/machine -run '^TestRecordedGuests$' -record-guest PROGRAM -record-as NAME
var (
	recordGuest = flag.String("record-guest", "", "the program of a guest to record, absolute")
	recordAs    = flag.String("record-as", "", "what to call it: version and commit")
)

// TestRecordedGuests connects to recordings of older guests. A sandbox may outlive an upgrade
// of its host, and its guest goes on speaking as it always did.
func TestRecordedGuests(t *testing.T) {
	if *recordGuest != "" {
		record(t)
	}
	files, err := filepath.Glob("testdata/guests/*.json")
	check(t, err)
	versions := map[int]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			recording, err := wiretest.Read(file)
			check(t, err)
			versions[recording.Welcome.Version] = true
			player := wiretest.Play(t, recording)
			m := machine.New(player.Connect, nil)
			t.Cleanup(func() { _ = m.Close() })
			conversation(t, m, recordedPorts)
			if unasked := player.Unused(); len(unasked) > 0 {
				t.Logf("not asked this time: %s", unasked)
			}
			tooNew(t, m, recording.Welcome.Version)
		})
	}
	for version := wire.MinVersion; version < wire.MaxVersion; version++ {
		if !versions[version] {
			t.Errorf("there is no recording of a guest that speaks version %d", version)
		}
	}
}

// TestConversation has the guest of this tree say what is recorded of others.
func TestConversation(t *testing.T) {
	conversation(t, machinetest.Start(t, recordable("")).Machine(t, nil), freePorts(t))
}

// recordable is a guest with a directory whose name is always the same.
func recordable(program string) *machinetest.Options {
	return &machinetest.Options{Program: program, Prepare: "mount -t tmpfs -o mode=1777 tmpfs /mnt"}
}

func record(t *testing.T) {
	t.Helper()
	g := machinetest.Start(t, recordable(*recordGuest))
	recorder := &wiretest.Recorder{Dial: g.Dial}
	m := machine.New(recorder.Connect, nil)
	conversation(t, m, recordedPorts)
	check(t, m.Close())
	recording := recorder.Recording()
	recording.Guest = *recordAs
	check(t, recording.Write(filepath.Join("testdata", "guests", *recordAs+".json")))
}

// conversation is what is recorded: something of everything that there is since
// version 1. It must be possible word by word in the same way every time.
func conversation(t *testing.T, m *machine.Machine, ports talkPorts) {
	t.Helper()
	check(t, m.Ping(patience(t)))
	info, err := m.Info(patience(t))
	check(t, err)
	if info.PID != 1 || info.UID != 65534 || info.CapEff != "0000000000000000" {
		t.Errorf("info: %+v", info)
	}
	t.Run("commands", func(t *testing.T) { commandsOf(t, m) })
	t.Run("processes", func(t *testing.T) { processesOf(t, m) })
	t.Run("files", func(t *testing.T) { filesOf(t, m) })
	t.Run("ports", func(t *testing.T) { portsOf(t, m, ports) })
}

func commandsOf(t *testing.T, m *machine.Machine) {
	got := sh(t, m, "echo out; echo err >&2; exit 3")
	if got.ExitCode != 3 || got.out != "out\n" || got.err != "err\n" || got.MaxRSS == 0 {
		t.Errorf("%+v %q %q", got.Result, got.out, got.err)
	}
	got = run(t, m, &machine.Command{Argv: []string{"cat"}, Stdin: strings.NewReader("hello")})
	if got.ExitCode != 0 || got.out != "hello" {
		t.Errorf("input: %+v %q", got.Result, got.out)
	}
	got = run(t, m, &machine.Command{Shell: "echo $A in $PWD", Env: []string{"A=x"}, Dir: "/mnt"})
	if got.out != "x in /mnt\n" {
		t.Errorf("shell: %q", got.out)
	}
	got = run(t, m, &machine.Command{Argv: []string{"sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x"}, OutputLimit: 1000})
	if len(got.out) != 1000 || got.Stdout.Lost != 99000 {
		t.Errorf("cap: %d bytes, %+v", len(got.out), got.Stdout)
	}
	got = run(t, m, &machine.Command{Argv: []string{"sleep", "600"}, Timeout: 100 * time.Millisecond})
	if !got.TimedOut || got.Signal != "SIGTERM" {
		t.Errorf("timeout: %+v", got.Result)
	}
	_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"no-such-program"}})
	wantErr(t, err, machine.ErrNotFound)
	_, err = m.Exec(patience(t), &machine.Command{Argv: []string{"true"}, Dir: "/no/such"})
	wantErr(t, err, machine.ErrNoDirectory)
}

func processesOf(t *testing.T, m *machine.Machine) {
	id, err := m.Start(patience(t), &machine.Command{Argv: []string{"sh", "-c", "cat; echo end; exit 7"}, Stdin: strings.NewReader("")})
	check(t, err)
	check(t, m.Write(patience(t), id, []byte("given\n"), true))
	result, err := m.Wait(patience(t), id)
	check(t, err)
	logs, err := m.Logs(patience(t), id, machine.LogRequest{})
	check(t, err)
	var out []byte
	for _, chunk := range logs.Stdout.Chunks {
		out = append(out, chunk.Bytes...)
	}
	if result.ExitCode != 7 || string(out) != "given\nend\n" {
		t.Errorf("%+v %q", result, out)
	}
	list, err := m.Processes(patience(t))
	check(t, err)
	if len(list) != 1 || list[0].ID != id || list[0].Result == nil {
		t.Errorf("list: %+v", list)
	}
	check(t, m.Forget(patience(t), id))
	_, err = m.Process(patience(t), id)
	wantErr(t, err, machine.ErrNoProcess)
	id, err = m.Start(patience(t), &machine.Command{Argv: []string{"sleep", "600"}})
	check(t, err)
	check(t, m.Signal(patience(t), id, "SIGCONT", true))
	check(t, m.End(patience(t), id, time.Second))
	_, err = m.Wait(patience(t), id)
	check(t, err)
	check(t, m.Forget(patience(t), id))
}

func filesOf(t *testing.T, m *machine.Machine) {
	files, err := guestfs.New(m, []guestfs.Root{{Path: "/mnt"}})
	check(t, err)
	ctx := patience(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	check(t, files.Mkdir(ctx, "/mnt/d", nil))
	_, err = files.Write(ctx, "/mnt/d/small", []byte("content\n"), nil)
	check(t, err)
	_, err = files.WriteFrom(ctx, "/mnt/d/large", bytes.NewReader(large), nil)
	check(t, err)
	for name, want := range map[string][]byte{"small": []byte("content\n"), "large": large} {
		content, err := files.Read(ctx, "/mnt/d/"+name, nil)
		check(t, err)
		if !bytes.Equal(content.Data, want) {
			t.Errorf("%s: %d bytes", name, len(content.Data))
		}
	}
	stat, err := files.Stat(ctx, "/mnt/d/small")
	check(t, err)
	listing, err := files.List(ctx, "/mnt/d", nil)
	check(t, err)
	if stat.Size != 8 || len(listing.Entries) != 2 {
		t.Errorf("%+v %+v", stat, listing)
	}
	_, err = files.Copy(ctx, "/mnt/d/small", "/mnt/d/copy", nil)
	check(t, err)
	check(t, files.Rename(ctx, "/mnt/d/copy", "/mnt/d/renamed", nil))
	_, err = files.Stat(ctx, "/mnt/d/copy")
	wantErr(t, err, fs.ErrNotExist)
	totals, err := files.Remove(ctx, "/mnt/d", &guestfs.RemoveOptions{Recursive: true})
	check(t, err)
	t.Logf("removed %+v", totals)
}

// talkPorts are the ports of a conversation.
type talkPorts struct{ served, dialed int }

// recordedPorts are those of all recordings: the same words, the same ports.
var recordedPorts = talkPorts{18733, 18734}

// freePorts are for a conversation with a guest that really listens.
func freePorts(t *testing.T) talkPorts {
	t.Helper()
	return talkPorts{freePort(t), freePort(t)}
}

func portsOf(t *testing.T, m *machine.Machine, ports talkPorts) {
	l, err := m.Listen(patience(t), ports.served, openPort(open))
	check(t, err)
	id, err := m.Start(patience(t), &machine.Command{Argv: []string{"python3", "-c", fmt.Sprintf(`
import socket
s = socket.create_connection(("127.0.0.1", %d)); s.sendall(b"ping"); s.shutdown(socket.SHUT_WR)
print(s.makefile().read())`, ports.served)}})
	check(t, err)
	conn, err := l.Accept()
	check(t, err)
	if got, err := io.ReadAll(conn); err != nil || string(got) != "ping" {
		t.Errorf("%q %v", got, err)
	}
	_, err = conn.Write([]byte("pong"))
	check(t, errors.Join(err, conn.Close()))
	_, err = m.Wait(patience(t), id)
	check(t, err)
	check(t, l.Close())
	id, err = m.Start(patience(t), &machine.Command{Argv: []string{"python3", "-c", fmt.Sprintf(`
import socket
s = socket.create_server(("127.0.0.1", %d)); print("ready", flush=True)
c, _ = s.accept(); c.sendall(b"got " + c.recv(4))`, ports.dialed)}})
	check(t, err)
	logs, err := m.Logs(patience(t), id, machine.LogRequest{Wait: 30 * time.Second})
	check(t, err)
	if len(logs.Stdout.Chunks) == 0 {
		t.Fatal("it is not ready")
	}
	dialed, err := m.Dial(patience(t), "tcp", ports.dialed)
	check(t, err)
	defer dialed.Close()
	_, err = dialed.Write([]byte("ping"))
	check(t, err)
	if got, err := io.ReadAll(dialed); err != nil || string(got) != "got ping" {
		t.Errorf("%q %v", got, err)
	}
	_, err = m.Wait(patience(t), id)
	check(t, err)
}

// tooNew sends a guest what came after its version, or after versions, and is
// refused by name.
func tooNew(t *testing.T, m *machine.Machine, version int) {
	t.Helper()
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, machine.ErrUnsupported) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "recreate") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if version >= 2 { // its guests had all features of the version, and named none
		refused("shared-grants", m.OpenGrant(patience(t), "g", true))
		check(t, m.Ping(patience(t)))
		return
	}
	_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}, Grant: "g"})
	refused("exec.grant", err)
	_, err = m.Start(patience(t), &machine.Command{Argv: []string{"true"}, Grant: "g"})
	refused("exec.grant", err)
	refused("grant.open", m.OpenGrant(patience(t), "g", false))
	_, err = m.Listen(patience(t), recordedPorts.served, &machine.PortOptions{Gate: open, WithGrant: true})
	refused("port.who", err)
	check(t, m.Ping(patience(t)))
}
