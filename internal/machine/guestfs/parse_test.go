package guestfs

import (
	"archive/tar"
	"bytes"
	"path"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/wire"
)

func FuzzArchive(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{
		{Name: "dir/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "dir/f", Size: 2, Typeflag: tar.TypeReg}, {Name: "l", Linkname: "x", Typeflag: tar.TypeSymlink},
	} {
		_ = w.WriteHeader(h)
		_, _ = w.Write(make([]byte, h.Size))
	}
	_ = w.Close()
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, archive []byte) {
		for r := tar.NewReader(bytes.NewReader(archive)); ; {
			h, err := r.Next()
			if err != nil {
				return
			}
			node, err := nodeOf(h, false)
			if err != nil || node == nil {
				continue
			}
			name := string(node.Path)
			if path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") || strings.IndexByte(name, 0) >= 0 || name == "." && node.Kind == KindDir {
				t.Errorf("%q becomes %q", h.Name, name)
			}
			if node.Size < 0 || node.Kind != KindDir && node.Kind != KindFile || node.Mode > 0o777 {
				t.Errorf("%+v", node)
			}
		}
	})
}

// FuzzTreeOrder: whatever names come, an accepted tree has no name twice, and
// each below a directory that came before.
func FuzzTreeOrder(f *testing.F) {
	for _, seed := range []string{".\na/\na/b\nc", ".\na\na/b", ".\nb/\na", "x", ".\na/\na/b/\nb\na/c", ".\na/\na-b\na/c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		var order treeOrder
		dirs := map[string]bool{}
		seen := map[string]bool{}
		for name := range strings.SplitSeq(script, "\n") {
			clean, isDir := strings.CutSuffix(name, "/")
			isDir = isDir || clean == "."
			if order.next(clean, isDir) != nil {
				return
			}
			if seen[clean] || clean != "." && !dirs[path.Dir(clean)] || strings.Contains("/"+clean+"/", "/../") {
				t.Errorf("%q was accepted", clean)
			}
			seen[clean] = true
			dirs[clean] = isDir
		}
	})
}

func TestBeneath(t *testing.T) {
	tests := []struct {
		root, name, want string
		ok               bool
	}{
		{"/w", "/w", ".", true}, {"/w", "/w/a/b", "a/b", true}, {"/w", "/wx", "", false}, {"/w", "/", "", false},
		{"/", "/", ".", true}, {"/", "/a", "a", true}, {"/w/a", "/w", "", false},
	}
	for _, tt := range tests {
		if got, ok := beneath(tt.root, tt.name); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s in %s: %q %v", tt.name, tt.root, got, ok)
		}
	}
}

// TestLimitsStayWithinTheWire: what is asked for is never more than a guest
// allows.
func TestLimitsStayWithinTheWire(t *testing.T) {
	l := ScanLimits{Entries: 1 << 40, Depth: 1 << 20, Bytes: 1 << 62, Time: 1 << 60}
	scan := l.scan()
	if scan.MaxEntries != wire.MaxScanned || scan.MaxDepth != wire.MaxDepth || scan.MaxBytes != MaxTree || scan.TimeMs != wire.MaxFileTime {
		t.Errorf("%+v", scan)
	}
	zero := (&ScanLimits{}).scan()
	if zero.MaxEntries <= 0 || zero.MaxDepth <= 0 || zero.MaxBytes <= 0 || zero.TimeMs <= 0 {
		t.Errorf("%+v", zero)
	}
}
