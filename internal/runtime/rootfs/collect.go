package rootfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

// Collected is what a collection took away.
type Collected struct {
	Layers int   `json:"layers"`
	Bytes  int64 `json:"bytes"` // of the layers' files, as far as it was noted
	Pins   int   `json:"pins"`  // of owners that are gone
	// Busy means that images were being made or used at that moment, so that
	// nothing was touched. The next collection does it.
	Busy bool `json:"busy,omitempty"`
}

// Collect removes every layer that no image has and no sandbox stands on, and
// what interrupted work left. Alive says whether an owner of a pin still
// exists; nil keeps all pins.
func (s *Store) Collect(ctx context.Context, alive func(owner string) bool) (Collected, error) {
	held, err := s.locks.TryHold(contentLock)
	if errors.Is(err, filelock.ErrHeld) {
		return Collected{Busy: true}, nil
	} else if err != nil {
		return Collected{}, fmt.Errorf("image store: %w", err)
	}
	done, doomed, err := s.renameUnneeded(alive)
	held.Release()
	// The directories have no name any more, so no lock is needed to remove them.
	for _, path := range doomed {
		if ctx.Err() != nil {
			break
		}
		removeTree(path)
	}
	return done, errors.Join(err, ctx.Err())
}

// renameUnneeded takes from layers/ what is not needed. Directories are renamed first:
// one that is half removed must not look like a layer.
func (s *Store) renameUnneeded(alive func(string) bool) (done Collected, doomed []string, err error) {
	if done.Pins, err = s.dropPins(alive); err != nil {
		return done, nil, err
	}
	needed, err := s.needed()
	if err != nil {
		return done, nil, err
	}
	temps, err := os.ReadDir(s.path("tmp"))
	if err != nil {
		return done, nil, err
	}
	for _, t := range temps {
		doomed = append(doomed, s.path("tmp", t.Name()))
	}
	layers, err := os.ReadDir(s.path("layers"))
	if err != nil {
		return done, doomed, err
	}
	for _, l := range layers {
		name := layerName(l.Name())
		if needed[name] {
			continue
		}
		var info Layer
		if readJSON(filepath.Join(s.layer(name), layerInfo), &info) == nil {
			done.Bytes += info.Size
		}
		away := s.path("tmp", "gone-"+rand.Text())
		if err := os.Rename(s.layer(name), away); err != nil {
			return done, doomed, err
		}
		done.Layers++
		doomed = append(doomed, away)
	}
	return done, doomed, nil
}

func (s *Store) dropPins(alive func(string) bool) (dropped int, err error) {
	if alive == nil {
		return 0, nil
	}
	entries, err := os.ReadDir(s.path("pins"))
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if info, err := e.Info(); alive(e.Name()) || err != nil || time.Since(info.ModTime()) < s.PinGrace {
			continue
		}
		if err := os.Remove(s.path("pins", e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dropped, err
		}
		dropped++
	}
	return dropped, nil
}

// needed are the layers of all images and pins. A pin that cannot be read is an
// error: nothing is collected then.
func (s *Store) needed() (map[layerName]bool, error) {
	x, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	needed := map[layerName]bool{}
	for _, image := range x.Images {
		for _, l := range image.Layers {
			needed[l.name()] = true
		}
	}
	pins, err := s.pins()
	if err != nil {
		return nil, err
	}
	for _, p := range pins {
		for _, name := range p.Layers {
			needed[name] = true
		}
	}
	return needed, nil
}
