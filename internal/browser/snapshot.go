package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
)

const (
	// MaxSnapshot is how many bytes of a page's text are returned.
	MaxSnapshot = 12 << 10
	// maxName bounds one text of a page.
	maxName = 300
	// maxURL bounds the address of a page.
	maxURL = 2000
	// maxDepth is how deep a tree is read.
	maxDepth = 64
)

// hiddenRoles are the roles of nodes that say nothing themselves; their children count.
var hiddenRoles = []string{"none", "generic", "InlineTextBox", "LineBreak", "RootWebArea"}

// Snapshot returns what the page shows, as an indented tree of roles and names, and
// whether a part was left out. Its text is the page's and must not be believed.
func (p *Page) Snapshot(ctx context.Context) (text string, cut bool, err error) {
	tree, err := cdp.Call(ctx, p.session, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		return "", false, err
	}
	w := &treeWriter{nodes: map[accessibility.NodeID]*accessibility.Node{}}
	for _, n := range tree.Nodes {
		if n != nil {
			w.nodes[n.NodeID] = n
		}
	}
	for _, n := range tree.Nodes {
		if n != nil && n.ParentID == "" {
			w.write(n, 0, 0)
		}
	}
	return w.text.String(), w.cut, nil
}

// treeWriter writes a tree, of which each node is written once.
type treeWriter struct {
	nodes map[accessibility.NodeID]*accessibility.Node
	text  strings.Builder
	cut   bool
}

// write writes a node with its children. indent counts the nodes above it that were
// written, depth all.
func (w *treeWriter) write(n *accessibility.Node, indent, depth int) {
	if _, isNew := w.nodes[n.NodeID]; !isNew || w.cut {
		return
	}
	delete(w.nodes, n.NodeID)
	if depth == maxDepth {
		w.cut = true
		return
	}
	if line := lineOf(n); line != "" {
		if w.text.Len()+len(line)+2*indent+1 > MaxSnapshot {
			w.cut = true
			return
		}
		w.text.WriteString(strings.Repeat("  ", indent) + line + "\n")
		indent++
	}
	for _, id := range n.ChildIDs {
		if child := w.nodes[id]; child != nil {
			w.write(child, indent, depth+1)
		}
	}
}

// lineOf returns the line of a node; "" if it has none.
func lineOf(n *accessibility.Node) string {
	role, name := textOf(n.Role), textOf(n.Name)
	if n.Ignored || role == "" || slices.Contains(hiddenRoles, role) {
		return ""
	}
	if role == "StaticText" {
		role = "text"
	}
	line := "- " + role
	if name != "" {
		line += fmt.Sprintf(" %q", name)
	}
	if value := textOf(n.Value); value != "" {
		line += fmt.Sprintf(": %q", value)
	}
	return line
}

// textOf returns a value as text without control characters.
func textOf(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var value any
	if json.Unmarshal(v.Value, &value) != nil || value == nil {
		return ""
	}
	return printable(fmt.Sprint(value), maxName)
}

// printable returns a text of a page in one line of at most so many bytes, without
// control characters and marks that change the direction of writing.
func printable(text string, most int) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, text)
	clean = strings.TrimSpace(clean)
	if len(clean) <= most {
		return clean
	}
	return strings.ToValidUTF8(clean[:most], "") + "…"
}

// Clean returns a text of a page without control characters and marks that change the
// direction of writing, and with nothing that looks like a ref of ours.
func Clean(text string) string {
	return escaped(strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		if unicode.IsSpace(r) {
			return ' '
		}
		return -1
	}, text))
}
