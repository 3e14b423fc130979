package kube

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath/archive"
	"github.com/atoll-run/atoll/internal/sandbox"
)

func TestMostBytesHome(t *testing.T) {
	for _, c := range []struct {
		size   string
		volume *kubekeys.Volume
		onIt   bool
		want   int64
	}{
		{"10Gi", nil, false, 20 << 30}, {"8Mi", nil, false, 16 << 20}, {"1Ti", nil, false, archive.MaxBytes}, {"1Gi", &kubekeys.Volume{Size: "3Gi"}, true, 6 << 30},
		{"1Gi", &kubekeys.Volume{Size: "3Gi"}, false, 2 << 30},
	} {
		r := &Runtime{settings: kubekeys.Settings{WorkspaceSize: c.size, WorkspaceVolume: c.volume}}
		if most, err := r.mostBytes(&copied{Volume: c.onIt}); most != c.want || err != nil {
			t.Errorf("%+v: %d, %v", c, most, err)
		}
	}
}

// TestTooLargeForHome: sparse files and hard links that take little room in the pod do not fill
// the host, and neither does a workspace for which its disk has no room. The sandbox goes on,
// and its files are brought home when they fit.
func TestTooLargeForHome(t *testing.T) {
	s := clusterSettings(t)
	s.WorkspaceSize = "16Mi"
	r := testRuntime(t, s)
	spec, home := workspaceSpec(t, "sparse")
	inst, m := started(t, r, spec)
	shell(t, m, "echo kept >/workspace/file")
	refused := func(what string, want error) {
		t.Helper()
		if err := inst.Stop(t.Context(), 0); !errors.Is(err, want) || errors.Is(want, archive.ErrTooLarge) && !strings.Contains(errhint.Of(err), "workspaceSize") {
			t.Errorf("%s: a stop ends with %v (%s)", what, err, errhint.Of(err))
		}
		if err := inst.Save(t.Context()); !errors.Is(err, want) || !errors.Is(err, sandbox.ErrNotSaved) {
			t.Errorf("%s: saving ends with %v", what, err)
		}
		if left, err := os.ReadDir(filepath.Dir(home)); err != nil || len(left) != 1 {
			t.Errorf("%s: beside home is %v, %v", what, left, err)
		}
	}
	shell(t, m, "truncate -s 33M /workspace/sparse")
	refused("a sparse file", archive.ErrTooLarge)
	shell(t, m, "rm /workspace/sparse; head -c 3000000 /dev/zero >/workspace/0; for i in $(seq 1 12); do ln /workspace/0 /workspace/$i; done")
	refused("hard links", archive.ErrTooLarge)
	shell(t, m, "cd /workspace; rm 0 1 2 3 4 5 6")
	full := errors.New("the disk is full")
	r.room = func(bytes int64) error {
		if bytes > 1<<20 {
			return full
		}
		return nil
	}
	refused("a full disk", full)
	r.room = nil
	if err := inst.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	removedWhole(t, r, inst)
	if text, err := os.ReadFile(filepath.Join(home, "file")); string(text) != "kept\n" || err != nil {
		t.Errorf("at home: %q, %v", text, err)
	}
}
