package inject

import "bytes"

// Filter finds the forms of texts in a stream of pieces, also across the borders of
// pieces, and replaces them. It holds back only what may be the beginning of a form,
// so that a stream of events is not delayed. The zero Filter, and nil, find nothing.
type Filter struct {
	forms []form
	held  []byte // the end of what was seen, which may be the beginning of a form
	work  []byte
	found string
}

// Next returns what of the stream can go on after piece, which it may change. The
// result is valid until the next call.
func (f *Filter) Next(piece []byte) []byte {
	if f == nil || len(f.forms) == 0 {
		return piece
	}
	if len(f.held) > 0 {
		f.work = append(append(f.work[:0], f.held...), piece...)
		piece = f.work
	}
	f.replace(piece)
	keep := f.beginning(piece)
	f.held = append(f.held[:0], piece[len(piece)-keep:]...)
	return piece[:len(piece)-keep]
}

// Rest returns what was held back, at the end of the stream.
func (f *Filter) Rest() []byte {
	if f == nil {
		return nil
	}
	rest := f.held
	f.held = nil
	return rest
}

// Found returns the name of a secret whose text was found, "" if none was.
func (f *Filter) Found() string {
	if f == nil {
		return ""
	}
	return f.found
}

// Text returns a text with every form replaced.
func (f *Filter) Text(text string) string {
	if f == nil || len(f.forms) == 0 {
		return text
	}
	b := []byte(text)
	f.replace(b)
	return string(b)
}

// replace replaces every form in b.
func (f *Filter) replace(b []byte) {
	for i := range f.forms {
		form := &f.forms[i]
		for at := 0; ; at += len(form.text) {
			next := bytes.Index(b[at:], form.text)
			if next < 0 {
				break
			}
			at += next
			copy(b[at:], form.replacement)
			f.found = form.secret
		}
	}
}

// beginning returns the length of the longest end of b that is the beginning of a
// form.
func (f *Filter) beginning(b []byte) int {
	longest := 0
	for i := range f.forms {
		text := f.forms[i].text
		end := b[max(0, len(b)-len(text)+1):]
		for len(end) > longest {
			at := bytes.IndexByte(end, text[0])
			if at < 0 {
				break
			}
			end = end[at:]
			if len(end) > longest && bytes.HasPrefix(text, end) {
				longest = len(end)
				break
			}
			end = end[1:]
		}
	}
	return longest
}

// HasName reports whether the name of a header holds a form. Names have no case.
func (f *Filter) HasName(name string) bool {
	lower := bytes.ToLower([]byte(name))
	for i := range f.forms {
		if bytes.Contains(lower, bytes.ToLower(f.forms[i].text)) {
			return true
		}
	}
	return false
}
