package docker

import (
	"bytes"
	"crypto/sha256"
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/guestbuild"
)

// withRealGuest makes a lab's sandboxes run the guest itself, not the probe.
func withRealGuest(t *testing.T) func(*Options) {
	program, err := os.ReadFile(guestbuild.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Guest = func(string) ([]byte, error) { return program, nil } }
}

// attachedTo runs a sandbox whose only wire goes through the engine.
func attachedTo(t *testing.T, l *lab) *machine.Machine {
	t.Helper()
	m := machine.New(l.start(t).Dial, nil)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func onEachAttached(t *testing.T, test func(*testing.T, *machine.Machine)) {
	guest := withRealGuest(t)
	onEach(t, func(t *testing.T, l *lab) {
		l = newLab(t, l.options.Host, l.options.Flavor, guest, func(o *Options) { o.Transport = TransportAttach })
		test(t, attachedTo(t, l))
	})
}

func TestAttachCarriesAWire(t *testing.T) {
	onEachAttached(t, func(t *testing.T, m *machine.Machine) {
		input := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
		var out, errs bytes.Buffer
		result, err := m.Exec(t.Context(), &machine.Command{
			Argv: []string{"/bin/sh", "-c", "cat; echo said >&2; exit 5"}, Stdin: bytes.NewReader(input), Stdout: &out, Stderr: &errs,
		})
		if err != nil {
			t.Fatal(err)
		}
		if result.ExitCode != 5 || errs.String() != "said\n" || sha256.Sum256(out.Bytes()) != sha256.Sum256(input) {
			t.Errorf("exit code %d, stderr %q, %d bytes back", result.ExitCode, errs.String(), out.Len())
		}
	})
}

// Code inside can start the same program, but has a parent there.
func TestAttachIsNotForCodeInside(t *testing.T) {
	onEachAttached(t, func(t *testing.T, m *machine.Machine) {
		for name, script := range map[string]string{
			"directly":     "(printf hello; sleep 1) | /.atoll/guest pass --socket /.atoll/wire/guest.sock | head -c 1 | wc -c",
			"as an orphan": "(setsid sh -c '(printf hello; sleep 1) | /.atoll/guest pass --socket /.atoll/wire/guest.sock | head -c 1 | wc -c >/tmp/got' &) ; sleep 2; cat /tmp/got",
		} {
			var out bytes.Buffer
			if _, err := m.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "0") {
				t.Errorf("%s: process 1 answered code from inside: %q", name, out.String())
			}
		}
	})
}
