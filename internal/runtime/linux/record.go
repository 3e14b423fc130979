package linux

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// record is what is stored of a sandbox: what it was made from, and its present
// run if it runs.
type record struct {
	Summary sandbox.Summary
	Spec    *sandbox.Spec
	Pins    []hostpath.ID // of Spec.Mounts, as they were checked
	Root    *rootfs.Root
	Volumes []string `json:",omitempty"` // directories of Spec.Volumes
	// Sealing is the layer that the changes so far are becoming, while a fork is
	// made; see fork.go.
	Sealing string `json:",omitempty"`
	// Groupless says that the sandbox never had a control group, so that none is
	// looked for when it is removed.
	Groupless bool      `json:",omitempty"`
	Run       *runState `json:"Life,omitempty"`
}

// The files in a sandbox's directory.
const (
	recordFile = "record.json"
	goneFile   = "gone.json" // the record of a sandbox that is being removed
	logFile    = "log"
	wireDir    = "wire"
	changesDir = "changes" // what was changed in its root, if that may be
	socketName = "guest.sock"
)

// load reads a record. A directory without one, or with one that a power cut
// damaged, is a creation that did not finish: there is no sandbox.
func load(dir string) (*record, error) { return read(filepath.Join(dir, recordFile)) }

func read(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, sandbox.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r := new(record)
	if json.Unmarshal(text, r) != nil || r.Spec == nil || r.Root == nil || len(r.Pins) != len(r.Spec.Mounts) {
		return nil, sandbox.ErrNotFound
	}
	for i, pin := range r.Pins {
		r.Spec.Mounts[i].Device, r.Spec.Mounts[i].Inode = pin.Device, pin.Inode
	}
	return r, nil
}

// save makes the record appear whole or not at all. There is no wait for the
// disk: after a power cut nothing runs, and what is lost is made again.
func (r *record) save(dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".record-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = replace(f.Name(), filepath.Join(dir, recordFile))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// replace puts a new file in the place of an old one, if there is one. Both
// change places, and the old one is removed: ext4 takes a rename over a file as
// a request to write the new one to the disk at once, and a removal a moment
// later would wait for that.
func replace(fresh, path string) error {
	if unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE) != nil {
		return os.Rename(fresh, path) // the first, or a file system that knows no exchange
	}
	return os.Remove(fresh)
}
