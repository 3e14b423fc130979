package relay_test

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// weight is how many bytes the files below a directory have.
func weight(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// A large repository is once on the host, in the mirror, and once in a sandbox,
// whatever the number of runs and branches: quarantines borrow its objects and
// worktrees share them.
func TestOneCopyOfALargeRepository(t *testing.T) {
	need.Time(t, "it copies a large repository")
	h, p := newHost(t), newSandbox(t)
	dir := t.TempDir()
	h.relay = relay.New(dir)
	noise := make([]byte, 2<<20)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	h.grow(hex.EncodeToString(noise))
	const runs = 3
	mirrored := int64(0)
	for i := range runs {
		w := h.prepare(p, branch.Key(fmt.Sprintf("line-%d", i)))
		if i == 0 {
			mirrored = weight(t, dir)
		}
		p.work(t, "a little", map[string]string{"new": fmt.Sprint(i)})
		h.send(h.take(p, w, fmt.Sprintf("run-%d", i)))
		if got := weight(t, filepath.Join(dir, "runs", fmt.Sprintf("run-%d", i))); got > 100<<10 {
			t.Errorf("run %d holds %d bytes", i, got)
		}
	}
	if mirrored < int64(len(noise)) {
		t.Fatalf("the mirror has %d bytes: it is not large", mirrored)
	}
	if got := weight(t, dir); got > mirrored+runs*(100<<10) {
		t.Errorf("the host has %d bytes, of which the mirror is %d", got, mirrored)
	}
	if got := weight(t, filepath.Join(p.root, ".relay.git", "objects")); got > mirrored+runs*(100<<10) {
		t.Errorf("the sandbox has %d bytes of objects, and the mirror %d", got, mirrored)
	}
}
