package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/moby/moby/api/types/mount"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// guestMode lets every user run the guest and none read it: a program that its
// user cannot read is not dumpable, so nothing with the sandbox's uid, root's
// without capabilities too, can trace it or open its memory.
const guestMode = 0o111

// guestProgram is the guest for one architecture.
type guestProgram struct {
	arch string
	body []byte
	hash string // hex sha256 of body
}

// guestStore remembers the programs and where they were already delivered, so
// that each is hashed and checked once a process.
type guestStore struct {
	mu        sync.Mutex
	programs  map[string]guestProgram
	delivered map[string]bool      // by volume
	checked   map[string]fileStamp // by path
}

// fileStamp identifies the content of a file: a change of it, or another file under
// its name, changes one of these fields.
type fileStamp struct {
	device, inode uint64
	size          int64
	changed       unix.Timespec
}

func (s *guestStore) program(arch string, read func(string) ([]byte, error)) (guestProgram, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.programs[arch]; ok {
		return p, nil
	}
	body, err := read(arch)
	if err != nil {
		return guestProgram{}, fmt.Errorf("guest for %s: %w", arch, err)
	}
	if len(body) == 0 {
		return guestProgram{}, fmt.Errorf("guest for %s: %w", arch, sandbox.ErrUnsupported)
	}
	sum := sha256.Sum256(body)
	p := guestProgram{arch: arch, body: body, hash: hex.EncodeToString(sum[:])}
	if s.programs == nil {
		s.programs = map[string]guestProgram{}
	}
	s.programs[arch] = p
	return p, nil
}

// deliverGuest makes the guest for an image available, and returns its mount.
func (r *Runtime) deliverGuest(ctx context.Context, f *facts, image imageFacts) (mount.Mount, error) {
	program, err := r.guests.program(image.arch, r.options.Guest)
	if err != nil {
		return mount.Mount{}, err
	}
	if r.delivery(f) == DeliverVolume {
		return r.deliverVolume(ctx, program, image)
	}
	path, err := r.writeGuestFile(program)
	if err != nil {
		return mount.Mount{}, err
	}
	p, err := pinPath(path, guestTarget)
	if err != nil {
		return mount.Mount{}, err
	}
	return p.mount(true), nil
}

func (r *Runtime) delivery(f *facts) Delivery {
	if r.options.Delivery != DeliverAuto {
		return r.options.Delivery
	}
	if f.where == Nearby && os.Geteuid() == 0 && !f.mapsUsers() {
		return DeliverFile
	}
	return DeliverVolume
}

// writeGuestFile puts the guest below the state directory. The name holds the hash,
// so an upgrade never changes the program of a running sandbox.
func (r *Runtime) writeGuestFile(p guestProgram) (string, error) {
	dir := filepath.Join(r.options.StateDir, "guest", p.hash)
	path := filepath.Join(dir, "atoll-guest")
	if r.guests.holds(path, p) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("guest: %w", err)
	}
	// One writes, and the others use that: a file that is replaced is not the one
	// that a sandbox which is just being made was promised.
	lock, err := os.Open(dir)
	if err != nil {
		return "", fmt.Errorf("guest: %w", err)
	}
	defer func() { _ = lock.Close() }() // which unlocks
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("guest: %w", err)
	}
	if r.guests.holds(path, p) {
		return path, nil
	}
	if err := writeWhole(dir, path, p.body, guestMode); err != nil {
		return "", fmt.Errorf("guest: %w", err)
	}
	return path, nil
}

// holds checks the file itself, not only that there is one: again only if it
// changed since.
func (s *guestStore) holds(path string, p guestProgram) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || os.FileMode(st.Mode).Perm() != guestMode || st.Size != int64(len(p.body)) {
		return false
	}
	now := fileStamp{st.Dev, st.Ino, st.Size, st.Ctim}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checked[path] == now {
		return true
	}
	if !hasHash(f, p.hash) {
		return false
	}
	if s.checked == nil {
		s.checked = map[string]fileStamp{}
	}
	s.checked[path] = now
	return true
}

func hasHash(f *os.File, hash string) bool {
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return false
	}
	return hex.EncodeToString(sum.Sum(nil)) == hash
}

// cachedPiece is how much of the guest is written at once. The kernel caches a file
// in pieces as large as it was written in, and newer ones map whole pieces: each
// guest would count megabytes of which it uses little.
const cachedPiece = 64 << 10

// writeWhole makes a file appear complete or not at all.
func writeWhole(dir, path string, body []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	for piece := range slices.Chunk(body, cachedPiece) {
		_, failed := f.Write(piece)
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
