// Package tailbuf keeps the end of what a program says: where it failed is said
// last, and it may say any amount before.
package tailbuf

import "slices"

// Writer keeps the last bytes of what is written to it. Its memory is bounded by
// twice their number.
type Writer struct {
	Most int // bytes kept
	kept []byte
	lost bool
}

func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	if over := n - w.Most; over > 0 {
		p, w.kept, w.lost = p[over:], w.kept[:0], true
	}
	if w.kept = append(w.kept, p...); len(w.kept) > 2*w.Most {
		w.kept = slices.Clone(w.Bytes())
	}
	return n, nil
}

// Bytes are what is kept.
func (w *Writer) Bytes() []byte {
	if over := len(w.kept) - w.Most; over > 0 {
		w.lost = true
		return w.kept[over:]
	}
	return w.kept
}

// Lost reports whether there was more.
func (w *Writer) Lost() bool { return w.lost || len(w.kept) > w.Most }
