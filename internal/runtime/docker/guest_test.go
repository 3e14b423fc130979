package docker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// markedProbe is a probe with a hash of its own, so that a test has its volume
// to itself.
func markedProbe(t *testing.T, mark string) func(string) ([]byte, error) {
	t.Helper()
	body, err := probe()
	if err != nil {
		t.Fatalf("probe: %v\n%s", err, body)
	}
	marked := slices.Concat(body, []byte(mark)) // bytes after an ELF file mean nothing
	return func(string) ([]byte, error) { return marked, nil }
}

func TestGuestDelivery(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		for _, delivery := range []Delivery{DeliverFile, DeliverVolume} {
			t.Run(string(delivery), func(t *testing.T) {
				l := newLab(t, l.options.Host, l.options.Flavor, func(o *Options) { o.Delivery, o.Guest = delivery, markedProbe(t, t.Name()) })
				removeGuestVolume(t, l)
				i := l.start(t, func(s *sandbox.Spec) { s.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Options: "exec"}} })
				if got := sh(t, i, "stat -c '%u:%g %a' /.atoll/guest"); got != "0:0 111" {
					t.Errorf("owner and mode: %s", got)
				}
				for what, line := range map[string]string{
					"read":    "cat /.atoll/guest >/dev/null 2>&1 || echo no",
					"write":   "echo x 2>/dev/null >> /.atoll/guest || echo no",
					"memory":  "cat /proc/1/mem >/dev/null 2>&1 || echo no",
					"environ": "cat /proc/1/environ >/dev/null 2>&1 || echo no",
				} {
					if got := sh(t, i, line); got != "no" {
						t.Errorf("%s of the guest by its own user is possible: %q", what, got)
					}
				}
				second := l.start(t)
				if got := sh(t, second, "echo shared"); got != "shared" {
					t.Errorf("second sandbox: %q", got)
				}
			})
		}
	})
}

// removeGuestVolume takes away the volume of a lab's guest after the test.
func removeGuestVolume(t *testing.T, l *lab) {
	t.Helper()
	program, err := l.guests.program("amd64", l.options.Guest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeVolume(t, l, program.volume()) })
}

// A volume that a crash left filled by half, or that someone wrote to, is
// filled again.
func TestDamagedGuestVolumeIsFilledAgain(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		options := func(o *Options) { o.Delivery, o.Guest = DeliverVolume, markedProbe(t, t.Name()) }
		damaged := newLab(t, l.options.Host, l.options.Flavor, options)
		removeGuestVolume(t, damaged)
		program, err := damaged.guests.program("amd64", damaged.options.Guest)
		if err != nil {
			t.Fatal(err)
		}
		image, err := damaged.inspectImage(t.Context(), damaged.spec().Image)
		if err != nil {
			t.Fatal(err)
		}
		helper, err := damaged.createHelper(t.Context(), program, image)
		if err != nil {
			t.Fatal(err)
		}
		half := program
		half.body = program.body[:len(program.body)/2]
		if err := damaged.copyGuest(t.Context(), helper, half); err != nil {
			t.Fatal(err)
		}
		if err := damaged.discard(t.Context(), helper); err != nil {
			t.Fatal(err)
		}
		fresh := newLab(t, l.options.Host, l.options.Flavor, options)
		if got := sh(t, fresh.start(t), "echo whole"); got != "whole" {
			t.Errorf("got %q", got)
		}
		if left := helpers(t, fresh); len(left) != 0 {
			t.Errorf("helper containers are left: %v", left)
		}
	})
}

func helpers(t *testing.T, l *lab) (names []string) {
	t.Helper()
	found, err := ask(t.Context(), l.engine, func(c *client.Client) (client.ContainerListResult, error) {
		return c.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", labelHelper+"="+l.options.Installation)})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Items {
		names = append(names, c.Names...)
	}
	return names
}

func TestShelvedGuestIsCheckedAndRepaired(t *testing.T) {
	need.Root(t, "others cannot read what may only be executed")
	r := &Runtime{options: Options{StateDir: t.TempDir()}}
	program, err := r.guests.program("amd64", func(string) ([]byte, error) { return []byte("guest program"), nil })
	if err != nil {
		t.Fatal(err)
	}
	path, err := r.writeGuestFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(r.options.StateDir, "guest", program.hash, "atoll-guest"); path != want {
		t.Errorf("path %s, want %s", path, want)
	}
	for name, spoil := range map[string]func() error{
		"content": func() error { return os.WriteFile(path, []byte("guest pr0gram"), 0o111) },
		"length":  func() error { return os.WriteFile(path, []byte("guest"), 0o111) },
		"mode":    func() error { return os.Chmod(path, 0o755) },
		"missing": func() error { return os.Remove(path) },
		"link": func() error {
			return errors.Join(os.Remove(path), os.Symlink("/bin/sh", path))
		},
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.writeGuestFile(program); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != guestMode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if body, err := os.ReadFile(path); err != nil || string(body) != "guest program" {
			t.Errorf("%s: not repaired: %q, %v", name, body, err)
		}
	}
}

// Those who need the guest at once get the same file: it is written once.
//
// Seen to fail without the lock.
func TestGuestIsShelvedOnce(t *testing.T) {
	need.Root(t, "others cannot read what may only be executed")
	state := t.TempDir()
	program := guestProgram{arch: "amd64", body: bytes.Repeat([]byte("guest"), 1<<20)}
	sum := sha256.Sum256(program.body)
	program.hash = hex.EncodeToString(sum[:])
	var files [8]os.FileInfo
	var all sync.WaitGroup
	for i := range files {
		all.Go(func() {
			r := &Runtime{options: Options{StateDir: state}} // as another process has
			path, err := r.writeGuestFile(program)
			if err == nil {
				files[i], err = os.Stat(path)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, file := range files {
		if file == nil || !os.SameFile(file, files[0]) {
			t.Errorf("%d has another file", i)
		}
	}
}

func TestNoGuestForAnArchitecture(t *testing.T) {
	r := &Runtime{}
	none := func(string) ([]byte, error) { return nil, nil }
	if _, err := r.guests.program("riscv64", none); !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), "riscv64") {
		t.Errorf("got %v", err)
	}
}
