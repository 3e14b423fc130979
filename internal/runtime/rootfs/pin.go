package rootfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// Pin keeps the layers of one root in the store. It ends with its process,
// unless an owner keeps it.
type Pin struct {
	ID   string // of the root
	Name string

	store  *Store
	held   *filelock.Lock
	layers []layerName
}

// pinned is what a durable pin says.
type pinned struct {
	ID     string      `json:"id"`
	Name   string      `json:"name"`
	Layers []layerName `json:"layers"`
}

var ownerForm = lazyregexp.Word{First: "a-zA-Z0-9", Rest: "a-zA-Z0-9_.-", Most: 128}

func (s *Store) pinPath(owner string) (string, error) {
	if !ownerForm.MatchString(owner) {
		return "", fmt.Errorf("pin: %q cannot own one", owner)
	}
	return s.path("pins", owner), nil
}

// Keep makes the pin last until Unpin(owner), whatever becomes of this process.
// Call it before anything is mounted: a pin too many is found and dropped by
// Collect, a layer that vanished is not.
func (p *Pin) Keep(owner string) error {
	path, err := p.store.pinPath(owner)
	if err != nil {
		return err
	}
	return writeJSON(p.store.path("tmp"), path, pinned{p.ID, p.Name, p.layers}, false)
}

// Directory returns a directory of an image as it lies in the store, which the pin
// keeps from then on. All of it must be in one layer, and no link may lead to it.
func (p *Pin) Directory(ref, path string) (string, error) {
	image, err := p.store.find(ref)
	if err != nil {
		return "", err
	}
	var found string
	for _, l := range image.lowers() {
		files := filepath.Join(p.store.layer(l), layerFiles)
		dir, err := directoryBelow(files, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && found != "" {
			err = errors.New("it is in several layers")
		}
		if err != nil {
			return "", fmt.Errorf("image %s: %s: %w", ref, path, err)
		}
		found, p.layers = dir, append(p.layers, l)
	}
	if found == "" {
		return "", fmt.Errorf("image %s: it has no directory %s: %w", ref, path, fs.ErrNotExist)
	}
	return found, nil
}

// directoryBelow returns the path of a directory below another, if it is one.
func directoryBelow(root, path string) (string, error) {
	opened, err := hostpath.OpenDir(root)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	rel := strings.TrimPrefix(filepath.Clean("/"+path), "/")
	dir, err := hostpath.OpenBeneath(opened, rel, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return "", err
	}
	return filepath.Join(root, rel), dir.Close()
}

// Release ends the part of the pin that belongs to this process. It may be
// called more than once.
func (p *Pin) Release() { p.held.Release() }

// Unpin ends what Keep began. It is no error if the owner has no pin.
func (s *Store) Unpin(owner string) error {
	path, err := s.pinPath(owner)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("pin: %w", err)
	}
	return nil
}

// pins reads all durable pins by owner.
func (s *Store) pins() (map[string]pinned, error) {
	entries, err := os.ReadDir(s.path("pins"))
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	all := make(map[string]pinned, len(entries))
	for _, e := range entries {
		var p pinned
		if err := readJSON(s.path("pins", e.Name()), &p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errhint.With(fmt.Errorf("pin of %s: %w", e.Name(), err), "remove the sandbox that has this id, and then the file "+s.path("pins", e.Name()))
		} else if err == nil {
			all[e.Name()] = p
		}
	}
	return all, nil
}

// writeJSON replaces the file at path by v, whole or not at all.
func writeJSON(temps, path string, v any, durable bool) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(temps, "json-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}
