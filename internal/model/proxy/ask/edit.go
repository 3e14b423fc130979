package ask

import "slices"

const (
	maxIdentities = 3 // user, safety_identifier, metadata.user_id
	maxEdits      = 2 + maxIdentities
)

// Edit replaces Del bytes at At by Text.
type Edit struct {
	At, Del int
	Text    string
}

// Edits returns the changes of the body before it goes to the upstream, in the
// order of their positions.
func (a *Ask) Edits() []Edit { return a.edits[:a.numEdits] }

// SizeAfterEdits returns the size of the body after the edits.
func (a *Ask) SizeAfterEdits(size int) int {
	for _, e := range a.Edits() {
		size += len(e.Text) - e.Del
	}
	return size
}

// Pieces appends the parts of the edited body to dst. They lie in body and in
// the edits; nothing is copied.
func (a *Ask) Pieces(dst [][]byte, body []byte) [][]byte {
	from := 0
	for _, e := range a.Edits() {
		dst = append(dst, body[from:e.At], []byte(e.Text))
		from = e.At + e.Del
	}
	return append(dst, body[from:])
}

// Append appends the edited body to dst.
func (a *Ask) Append(dst, body []byte) []byte {
	from := 0
	for _, e := range a.Edits() {
		dst = append(append(dst, body[from:e.At]...), e.Text...)
		from = e.At + e.Del
	}
	return append(dst, body[from:]...)
}

func (a *Ask) edit(at, del int, text string) {
	a.edits[a.numEdits] = Edit{At: at, Del: del, Text: text}
	a.numEdits++
}

// Identify sets every member of the body that identifies the caller to this value.
// The text needs no escapes in JSON.
func (a *Ask) Identify(as string) {
	for _, at := range a.identities[:a.numIdentities] {
		a.edit(at.start, at.end-at.start, `"`+as+`"`)
	}
	a.numIdentities = 0
	slices.SortFunc(a.edits[:a.numEdits], func(x, y Edit) int { return x.At - y.At })
}

// editPoints are the positions in a body where something may have to change.
type editPoints struct {
	inside      int  // behind the first brace
	options     span // stream_options, if any
	inOptions   int  // behind its brace, if it is an object
	hasMembers  bool // it has members
	usage       span // the value of include_usage, if any
	storeIsSaid bool
}

// span is a part of the body; an end of 0 means that there is none.
type span struct{ start, end int }

// planEdits decides what must change.
func (r *Reader) planEdits() {
	a, s := r.ask, &r.spots
	if r.rules.ForbidUnsent && r.rules.Strict && r.shape == Responses && !s.storeIsSaid {
		a.edit(s.inside, 0, `"store":false,`)
	}
	if !r.rules.InjectUsage || r.shape != Chat || !a.Stream || a.IncludeUsage {
		return
	}
	switch {
	case s.usage.end > 0:
		a.edit(s.usage.start, s.usage.end-s.usage.start, "true")
	case s.inOptions > 0 && s.hasMembers:
		a.edit(s.inOptions, 0, `"include_usage":true,`)
	case s.inOptions > 0:
		a.edit(s.inOptions, 0, `"include_usage":true`)
	case s.options.end > 0:
		a.edit(s.options.start, s.options.end-s.options.start, `{"include_usage":true}`)
	default:
		a.edit(s.inside, 0, `"stream_options":{"include_usage":true},`)
	}
}
