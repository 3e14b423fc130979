package browser

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"

	"github.com/atoll-run/atoll/internal/browser/devtools"
)

// maxFrames is how many frames of a page are read.
const maxFrames = 20

// interactiveRoles are the roles of what a person can use.
var interactiveRoles = []string{
	"button", "checkbox", "combobox", "link", "listbox", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "radio", "searchbox", "slider",
	"spinbutton", "switch", "tab", "textbox", "treeitem",
}

// AriaOptions say what of a page is wanted.
type AriaOptions struct {
	Interactive bool   // only what a person can use
	Depth       int    // 0: all
	Query       string // only lines with this text, and what is above them
	MaxBytes    int    // 0: MaxSnapshot
}

// Aria is what a page shows, as a tree of roles and names with refs. Its text is the
// page's and must not be believed.
type Aria struct {
	Text     string
	Lines    int // of the whole page
	Shown    int
	Document string // which document it is of: refs are valid for that one
}

// Aria returns what the page shows, with a ref for every element that has a node.
func (p *Page) Aria(ctx context.Context, o AriaOptions) (*Aria, error) {
	top, err := cdp.Call(ctx, p.session, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return nil, err
	}
	if top.FrameTree == nil || top.FrameTree.Frame == nil {
		return nil, fmt.Errorf("the browser names no frame of the page")
	}
	document := string(top.FrameTree.Frame.LoaderID)
	p.refs.begin(document)
	r := &ariaReader{page: p, frames: map[element]ariaFrame{}}
	r.findFrames(ctx, p.session, top.FrameTree.ChildFrames, 0)
	r.findRemote(ctx)
	if err := r.read(ctx, ariaFrame{session: p.session}, 0, 0); err != nil {
		return nil, err
	}
	text, shown := choose(r.lines, o)
	return &Aria{Text: text, Lines: len(r.lines), Shown: shown, Document: document}, nil
}

// ariaFrame is one frame of a page.
type ariaFrame struct {
	session *devtools.Session
	id      cdp.FrameID
}

// ariaLine is one line of the tree.
type ariaLine struct {
	indent int
	text   string
	role   string
}

// ariaReader reads the frames of a page into lines.
type ariaReader struct {
	page   *Page
	frames map[element]ariaFrame // by the node that shows them
	lines  []ariaLine
	nodes  map[accessibility.NodeID]*accessibility.Node
	in     ariaFrame
}

// findRemote finds the nodes that show frames of other processes, and the frames in them.
func (r *ariaReader) findRemote(ctx context.Context) {
	for s, f := range r.page.frames.list() {
		owner, err := cdp.Call(ctx, f.parent, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: f.id})
		if err != nil || len(r.frames) >= maxFrames {
			continue
		}
		r.frames[element{f.parent, owner.BackendNodeID}] = ariaFrame{session: s}
		if tree, err := cdp.Call(ctx, s, page.GetFrameTree, cdp.Empty{}); err == nil && tree.FrameTree != nil {
			r.findFrames(ctx, s, tree.FrameTree.ChildFrames, 0)
		}
	}
}

// findFrames finds the nodes that show the frames below one.
func (r *ariaReader) findFrames(ctx context.Context, s *devtools.Session, trees []*page.FrameTree, depth int) {
	for _, t := range trees {
		if t == nil || t.Frame == nil || len(r.frames) >= maxFrames || depth > maxDepth {
			return
		}
		if owner, err := cdp.Call(ctx, s, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: t.Frame.ID}); err == nil {
			r.frames[element{s, owner.BackendNodeID}] = ariaFrame{session: s, id: t.Frame.ID}
		}
		r.findFrames(ctx, s, t.ChildFrames, depth+1)
	}
}

// read reads one frame.
func (r *ariaReader) read(ctx context.Context, in ariaFrame, indent, depth int) error {
	tree, err := cdp.Call(ctx, in.session, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{FrameID: in.id})
	if err != nil {
		return err
	}
	nodes, outer := r.nodes, r.in
	r.nodes, r.in = map[accessibility.NodeID]*accessibility.Node{}, in
	defer func() { r.nodes, r.in = nodes, outer }()
	for _, n := range tree.Nodes {
		if n != nil {
			r.nodes[n.NodeID] = n
		}
	}
	for _, n := range tree.Nodes {
		if n != nil && n.ParentID == "" {
			r.walk(ctx, n, indent, depth)
		}
	}
	return nil
}

// walk writes a node with its children, each once.
func (r *ariaReader) walk(ctx context.Context, n *accessibility.Node, indent, depth int) {
	if _, isNew := r.nodes[n.NodeID]; !isNew || depth >= maxDepth || len(r.lines) >= maxLines {
		return
	}
	delete(r.nodes, n.NodeID)
	if line, role := r.lineOf(n); line != "" {
		r.lines = append(r.lines, ariaLine{indent, line, role})
		indent++
	}
	if at := (element{r.in.session, n.BackendDOMNodeID}); n.BackendDOMNodeID != 0 && r.frames[at].session != nil {
		frame := r.frames[at]
		delete(r.frames, at)
		_ = r.read(ctx, frame, indent, depth+1) // a frame that is gone is left out
	}
	for _, id := range n.ChildIDs {
		if child := r.nodes[id]; child != nil {
			r.walk(ctx, child, indent, depth+1)
		}
	}
}

// lineOf returns the line of a node and its role; "" if it has none. Texts that repeat the
// name of what they are in are left to it.
func (r *ariaReader) lineOf(n *accessibility.Node) (line, role string) {
	role = textOf(n.Role)
	name := escaped(textOf(n.Name))
	if n.Ignored || role == "" || slices.Contains(hiddenRoles, role) {
		return "", ""
	}
	if role == "StaticText" {
		if name == "" || r.parentSays(textOf(n.Name)) {
			return "", ""
		}
		return fmt.Sprintf("text: %q", name), "text"
	}
	line = role
	if name != "" {
		line += fmt.Sprintf(" %q", name)
	}
	line += states(n)
	if n.BackendDOMNodeID != 0 {
		line += " [ref=" + r.page.refs.of(element{r.in.session, n.BackendDOMNodeID}, role) + "]"
	}
	if value := escaped(textOf(n.Value)); value != "" {
		line += fmt.Sprintf(": %q", value)
	}
	return line, role
}

// parentSays reports whether the node above has the same name.
func (r *ariaReader) parentSays(name string) bool {
	if len(r.lines) == 0 || name == "" {
		return false
	}
	last := r.lines[len(r.lines)-1]
	return last.role != "text" && strings.Contains(last.text, fmt.Sprintf(" %q", escaped(name)))
}

// shownStates are the properties of nodes that are told.
var shownStates = []accessibility.PropertyName{"checked", "disabled", "expanded", "level", "pressed", "required", "selected", "focused", "invalid", "readonly"}

// states returns the properties of a node as [name] or [name=value].
func states(n *accessibility.Node) (text string) {
	for _, p := range n.Properties {
		if p == nil || !slices.Contains(shownStates, p.Name) {
			continue
		}
		switch value := escaped(textOf(p.Value)); value {
		case "", "false":
		case "true":
			text += " [" + string(p.Name) + "]"
		default:
			text += fmt.Sprintf(" [%s=%s]", p.Name, strings.Map(wordOnly, value))
		}
	}
	return text
}

// wordOnly drops what is not a letter, a digit or a dash.
func wordOnly(r rune) rune {
	if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return -1
}

// maxLines is how many lines of a page are looked at.
const maxLines = 20_000

// choose returns the lines that are wanted, and how many they are.
func choose(lines []ariaLine, o AriaOptions) (string, int) {
	most, shown := o.MaxBytes, 0
	if most <= 0 || most > MaxSnapshot {
		most = MaxSnapshot
	}
	keep := o.keep(lines)
	var b strings.Builder
	for i, l := range lines {
		if !keep[i] {
			continue
		}
		text := strings.Repeat("  ", min(l.indent, maxDepth)) + "- " + l.text + "\n"
		if b.Len()+len(text) > most {
			break
		}
		b.WriteString(text)
		shown++
	}
	return b.String(), shown
}

// keep returns which lines are wanted: with a query those that have it and what is above
// them.
func (o AriaOptions) keep(lines []ariaLine) []bool {
	keep := make([]bool, len(lines))
	query := strings.ToLower(o.Query)
	for i, l := range lines {
		switch {
		case o.Depth > 0 && l.indent >= o.Depth:
		case o.Interactive && !slices.Contains(interactiveRoles, l.role):
		case query != "" && !strings.Contains(strings.ToLower(l.text), query):
		default:
			keep[i] = true
		}
		if keep[i] && query != "" {
			for at, above := i, l.indent; at >= 0 && above > 0; at-- {
				if lines[at].indent < above {
					keep[at], above = true, lines[at].indent
				}
			}
		}
	}
	return keep
}

// escaped takes what looks like a ref of ours out of a page's text.
func escaped(text string) string { return strings.ReplaceAll(text, "[ref=", "(ref=") }

// element is one element of a document.
type element struct {
	session *devtools.Session
	node    cdp.BackendNodeID
}

// refs are the names of the elements of a page's document, given by us. Numbers are never
// used twice, so that the ref of an older document is known as such.
type refs struct {
	document string
	last     int
	first    int // the first number of the document
	names    map[element]string
	elements map[string]element
	usable   []string // those that a person can use
}

// begin forgets the refs of another document.
func (r *refs) begin(document string) {
	if r.elements != nil && r.document == document {
		return
	}
	r.document, r.first = document, r.last+1
	r.names, r.elements, r.usable = map[element]string{}, map[string]element{}, nil
}

// of returns the name of an element with a role, which it keeps.
func (r *refs) of(e element, role string) string {
	if name, ok := r.names[e]; ok {
		return name
	}
	r.last++
	name := "e" + strconv.Itoa(r.last)
	r.names[e], r.elements[name] = name, e
	if slices.Contains(interactiveRoles, role) {
		r.usable = append(r.usable, name)
	}
	return name
}
