package linux

import (
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/runtime/guestbin"
)

// Processes that put the guest on the shelf at the same time do not take it away
// from each other.
func TestShelfOfManyProcesses(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				s := &guestStore{dir: dir, find: guestbin.Find}
				path, err := s.program()
				if err != nil {
					t.Error(err)
					return
				}
				f, err := os.Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() {
					defer f.Close()
					var st unix.Stat_t
					if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Nlink == 0 {
						t.Errorf("the guest was replaced under one who had it: %v", err)
					}
				})
			})
		}
		all.Wait()
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v", entries, err)
		}
	}
}
