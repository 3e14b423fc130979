package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowdTurns is how often each image is stood upon before they stop, in crowdMost.
const (
	crowdTurns = 8
	crowdMost  = 5 * time.Minute
)

// Images are taken in, named, removed, collected and stood upon by many at once.
// A resolved root is complete until its pin is released, and in the end nothing
// is left of any.
func TestACrowdNeverLosesWhatItStandsOn(t *testing.T) {
	dir := t.TempDir()
	base, upper := twoLayers(t)
	other := pack(t, tarFile("other", "o"))
	archives := []string{
		save(t, "1.tar", savedArchive(t, imageOf(t, base, upper), "crowd:1")),
		save(t, "2.tar", savedArchive(t, imageOf(t, base, other), "crowd:1")), // takes the name from the first
		save(t, "3.tar", savedArchive(t, imageOf(t, base, upper, other), "crowd:3")),
	}
	host := serve(t, nil)
	push(t, host+"/crowd:4", imageOf(t, upper, base))
	names := []string{"crowd:1", "crowd:3", host + "/crowd:4"}
	ctx, cancel := context.WithTimeout(t.Context(), crowdMost)
	defer cancel()
	var all sync.WaitGroup
	act := func(what string, f func(s *Store, n int) error) {
		for range 2 {
			s, err := Open(dir, Options{Volatile: true, PinGrace: -1}) // each as another process would
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if err := f(s, n); err != nil && !errors.Is(err, ErrNoImage) && ctx.Err() == nil {
						t.Errorf("%s: %v", what, err)
						return
					}
				}
			})
		}
	}
	act("import", func(s *Store, n int) error {
		_, err := s.Import(ctx, archives[n%len(archives)], AddOptions{})
		return err
	})
	act("pull", func(s *Store, _ int) error {
		_, err := s.Pull(ctx, names[2], AddOptions{})
		return err
	})
	act("rm", func(s *Store, n int) error {
		_, err := s.Remove(ctx, names[n%len(names)])
		return err
	})
	act("collect", func(s *Store, _ int) error {
		_, err := s.Collect(ctx, nil)
		time.Sleep(time.Millisecond)
		return err
	})
	stood := make([]atomic.Int64, len(names))
	act("use", func(s *Store, n int) error {
		owner := fmt.Sprintf("box-%p-%d", s, n)
		err := standOn(ctx, s, names[n%len(names)], owner)
		if err == nil {
			stood[n%len(names)].Add(1)
		}
		if !slices.ContainsFunc(names, func(n string) bool { return stood[slices.Index(names, n)].Load() < crowdTurns }) {
			cancel()
		}
		return err
	})
	all.Wait()
	for i, name := range names {
		if n := stood[i].Load(); n < crowdTurns {
			t.Errorf("stood on %s %d times in %v", name, n, crowdMost)
		}
	}
	s, err := Open(dir, Options{PinGrace: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := s.Remove(t.Context(), name); err != nil && !errors.Is(err, ErrNoImage) {
			t.Error(err)
		}
	}
	collect(t, s, func(string) bool { return false })
	nothingLeft(t, s)
}

// standOn does what the making of a sandbox does, and its removal.
func standOn(ctx context.Context, s *Store, ref, owner string) error {
	root, pin, err := s.Resolve(ctx, ref, Identity{UID: 1000})
	if err != nil {
		return err
	}
	defer pin.Release()
	if err := pin.Keep(owner); err != nil {
		return err
	}
	pin.Release()
	time.Sleep(time.Millisecond) // it lives
	for _, layer := range root.Layers {
		if _, err := os.Stat(layer); err != nil {
			return fmt.Errorf("gone under the sandbox: %w", err)
		}
	}
	return s.Unpin(owner)
}
