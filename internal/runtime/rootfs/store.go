package rootfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/outbound"
)

// Options say how a store works. The zero value is what a user wants.
type Options struct {
	Limits Limits
	// Hide are host paths that no view of the host may show: the state
	// directory, the user's home.
	Hide []string
	// Volatile leaves out the wait for the disk that lets a new image survive a
	// power cut. For tests.
	Volatile bool
	// PinGrace is how long a pin is kept whose owner is not known: a sandbox is
	// pinned before it exists. 0 is DefaultPinGrace, a negative value none.
	PinGrace time.Duration
	// Registries that may be spoken to without TLS, beside those on loopback.
	Insecure []string
	// Outbound returns how registries are reached; nil: as the environment says.
	Outbound func() (*outbound.Host, error)

	hostBase string // what to take for / in tests
}

// DefaultPinGrace is far longer than the making of any sandbox takes.
const DefaultPinGrace = time.Hour

// Store keeps unpacked images. It is safe for concurrent use, also by several
// processes.
type Store struct {
	Options
	dir   string
	locks *filelock.Locks
}

// Open returns the store in a directory, making it if needed.
func Open(dir string, o Options) (*Store, error) {
	for _, sub := range []string{"layers", "pins", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("image store: %w", err)
		}
	}
	locks, err := filelock.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	o.Limits = o.Limits.orDefaults()
	if o.PinGrace == 0 {
		o.PinGrace = DefaultPinGrace
	}
	return &Store{Options: o, dir: dir, locks: locks}, nil
}

// The locks: a process that uses or makes layers shares contentLock, one that removes
// layers holds it. A process that changes the index holds indexLock, briefly.
const (
	contentLock = "content"
	indexLock   = "index"
)

// A layerName is the name of a directory in layers/.
type layerName string

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

func (s *Store) layer(name layerName) string { return s.path("layers", string(name)) }

// A layer's directory holds its files and a note of what they are.
const (
	layerFiles = "fs"
	layerInfo  = "info.json"
)

func (s *Store) hasLayer(name layerName) bool {
	info, err := os.Lstat(s.layer(name))
	return err == nil && info.IsDir()
}

// temporary makes a place for a layer that is being made.
func (s *Store) temporary() (string, error) {
	path := s.path("tmp", rand.Text())
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("image store: %w", err)
	}
	files := filepath.Join(path, layerFiles)
	if err := os.Mkdir(files, 0o700); err != nil {
		return "", fmt.Errorf("image store: %w", err)
	}
	return path, os.Chmod(files, 0o755) // it is the root directory of sandboxes
}

// publish gives a finished directory its name as a layer. If another process
// published the same layer first, that one stays.
func (s *Store) publish(temp string, name layerName) error {
	err := unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, s.layer(name), unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system that cannot: an empty target is replaced, a full one not
		err = os.Rename(temp, s.layer(name))
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// removeTree removes a directory of ours; what cannot be removed now is
// collected later.
func removeTree(path string) { _ = os.RemoveAll(path) }

// Resolve says what a sandbox's root is made of: the host's programs if ref is
// unset or HostName, else the image of that reference. The layers stay until
// the pin is released, and beyond that while an owner keeps it.
func (s *Store) Resolve(ctx context.Context, ref string, id Identity) (_ *Root, _ *Pin, err error) {
	held, err := s.locks.Share(ctx, contentLock)
	if err != nil {
		return nil, nil, fmt.Errorf("image store: %w", err)
	}
	pin := &Pin{store: s, held: held}
	defer func() {
		if err != nil {
			pin.Release()
		}
	}()
	root, err := s.resolve(ctx, ref, id, pin)
	if err != nil {
		return nil, nil, err
	}
	pin.ID, pin.Name = root.ID, root.Name
	for _, name := range pin.layers {
		root.Layers = append(root.Layers, filepath.Join(s.layer(name), layerFiles))
	}
	return root, pin, nil
}

func (s *Store) resolve(ctx context.Context, ref string, id Identity, pin *Pin) (*Root, error) {
	if IsHost(ref) {
		return s.resolveHost(ctx, id, pin, nil)
	}
	record, err := s.find(ref)
	if err != nil {
		return nil, err
	}
	lowers := record.lowers()
	if record.OnHost {
		return s.resolveOnHost(ctx, ref, id, pin, record)
	}
	entries, err := withMountPoints(imageFiles(id), id, func(path string) bool { return s.isLink(lowers, path) })
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	top, err := s.generated(ctx, entries)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	pin.layers = append([]layerName{top}, lowers...)
	return &Root{ID: record.ID, Name: ref, Config: record.Config}, nil
}

// resolveHost returns the root of the host's own programs, with the layers of an image
// over the parts that are generated.
func (s *Store) resolveHost(ctx context.Context, id Identity, pin *Pin, lowers []layerName) (*Root, error) {
	view, err := newHostView(s.hostBase, s.Hide)
	if err != nil {
		return nil, err
	}
	entries := slices.Concat(networkFiles(id), userFiles(id), skeleton(), view.entries)
	if entries, err = withMountPoints(entries, id, func(path string) bool { return s.isLink(lowers, path) }); err != nil {
		return nil, fmt.Errorf("host root: %w", err)
	}
	top, err := s.generated(ctx, entries)
	if err != nil {
		return nil, fmt.Errorf("host root: %w", err)
	}
	pin.layers = append([]layerName{top}, lowers...)
	return &Root{ID: view.fingerprint(), Name: HostName, Binds: view.binds, Masks: view.masks}, nil
}

// resolveOnHost returns the root of an image whose base is the host.
func (s *Store) resolveOnHost(ctx context.Context, ref string, id Identity, pin *Pin, record *Image) (*Root, error) {
	root, err := s.resolveHost(ctx, id, pin, record.lowers())
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	root.ID, root.Name, root.Config = record.ID, ref, record.Config
	return root, nil
}
