package config

import (
	"fmt"
	pathpkg "path"
	"strings"

	"github.com/atoll-run/atoll/internal/config/wording"
)

// maxTrees bounds overlay.more.
const maxTrees = 16

// checkTrees refuses trees that lie in each other.
func checkTrees(c *checker, at *path, n *node) {
	more := n.get("more")
	if more == nil {
		return
	}
	if len(more.items) > maxTrees {
		c.error(finding{at.child("more"), more.offset, fmt.Sprintf("has %d directories, %d are the most", len(more.items), maxTrees), ""})
	}
	for i, item := range more.items {
		for j, other := range more.items[:i] {
			for _, key := range []string{"source", "target"} {
				a, b := item.get(key), other.get(key)
				if a != nil && b != nil && (lies(a.text, b.text) || lies(b.text, a.text)) {
					c.error(finding{at.child("more").item(i).child(key), a.offset,
						fmt.Sprintf("%s and %s (entry %d, line %d) lie in each other", wording.Quote(a.text), wording.Quote(b.text), j, c.doc.Position(b.offset).Line),
						"name directories that are apart"})
				}
			}
		}
	}
}

// lies reports whether path is dir or lies in it, by their text.
func lies(path, dir string) bool {
	path, dir = pathpkg.Clean(path), pathpkg.Clean(dir)
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// checkYolo refuses the access yolo with a mode that contradicts it.
func checkYolo(c *checker, at *path, n *node) {
	mode := n.get("sync").get("mode")
	if n.get("workspaceAccess").string() == yolo && mode.string() == string(SyncReview) {
		c.error(finding{at.under("sync.mode"), mode.offset,
			"workspaceAccess yolo applies changes by itself, and review does not", `write workspaceAccess: "overlay" to approve changes, or remove sync.mode`})
	}
}
