package files

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
)

// searchBlock is how much of a file is searched at once. A longer line is split.
type searchBlock [256 << 10]byte

var searchBlocks = sync.Pool{New: func() any { return new(searchBlock) }}

// searchedFile is the search of one file.
type searchedFile struct {
	*searchCall
	path    string
	begun   bool
	left    int               // matches it may still have
	line    int               // lines before the present block
	before  []wire.Text       // the last lines before it
	waiting []*wire.FileMatch // matches that still lack lines after them
}

// read searches the file block by block, each of whole lines.
func (r *searchedFile) read(file io.Reader) error {
	for have := 0; ; {
		n, err := io.ReadAtLeast(file, r.block[have:], 1)
		have += n
		over := errors.Is(err, io.EOF)
		if err != nil && !over {
			r.refused(r.path, err)
			return r.end()
		}
		if r.begins(have) {
			return nil
		}
		whole := have
		if last := bytes.LastIndexByte(r.block[:have], '\n'); !over && last >= 0 {
			whole = last + 1
		} else if !over && have < len(r.block) { // the line may go on
			continue
		}
		if err := r.scan(r.block[:whole]); err != nil {
			return err
		}
		if over || r.left == 0 && len(r.waiting) == 0 {
			return r.end()
		}
		have = copy(r.block[:], r.block[whole:have])
	}
}

// begins examines the beginning of the file, once, and reports whether it is binary.
func (r *searchedFile) begins(have int) bool {
	if r.begun {
		return false
	}
	r.begun = true
	if bytes.IndexByte(r.block[:min(have, binaryProbe)], 0) >= 0 {
		r.Binary++
		return true
	}
	r.Files++
	return false
}

// scan searches a block of whole lines.
func (r *searchedFile) scan(block []byte) error {
	r.Bytes += int64(len(block))
	err := errors.Join(r.budget.checkTime(), r.budget.spendBytes(int64(len(block))), r.feed(block))
	if err != nil {
		return err
	}
	at, line := 0, r.line
	for r.left > 0 {
		start, column := r.next(block, at)
		if start < 0 {
			break
		}
		line += bytes.Count(block[at:start], newline)
		end := lineEnd(block, start)
		m := &wire.FileMatch{Path: wire.Text(r.path), Line: line + 1, Column: column + 1}
		if err := r.match(m, block, start, end); err != nil {
			return err
		}
		at, line = min(end+1, len(block)), line+1
	}
	r.line += bytes.Count(block, newline)
	r.before = r.linesBefore(block, len(block))
	return nil
}

// match adds text and context to a match, and sends it or keeps it until the lines
// after it are read.
func (r *searchedFile) match(m *wire.FileMatch, block []byte, start, end int) error {
	r.left--
	m.Text, m.Cut = r.cut(block[start:end])
	if r.asked.Context == 0 {
		return r.found(m)
	}
	m.Before = r.linesBefore(block, start)
	m.After = r.firstLines(block[min(end+1, len(block)):], r.asked.Context)
	r.waiting = append(r.waiting, m)
	return r.send(false)
}

// feed adds the first lines of block to the matches that wait for them.
func (r *searchedFile) feed(block []byte) error {
	for _, m := range r.waiting {
		m.After = append(m.After, r.firstLines(block, r.asked.Context-len(m.After))...)
	}
	return r.send(false)
}

// send sends the waiting matches that are complete, or all of them.
func (r *searchedFile) send(all bool) error {
	for len(r.waiting) > 0 && (all || len(r.waiting[0].After) == r.asked.Context) {
		m := r.waiting[0]
		r.waiting = r.waiting[1:]
		if err := r.found(m); err != nil {
			return err
		}
	}
	return nil
}

func (r *searchedFile) end() error { return r.send(true) }

// firstLines returns up to n lines from the beginning of text.
func (r *searchedFile) firstLines(text []byte, n int) []wire.Text {
	var lines []wire.Text
	for len(text) > 0 && len(lines) < n {
		end := lineEnd(text, 0)
		line, _ := r.cut(text[:end])
		lines = append(lines, line)
		text = text[min(end+1, len(text)):]
	}
	return lines
}

// linesBefore returns the lines before the offset at, from the block and, if those are
// too few, from before it.
func (r *searchedFile) linesBefore(block []byte, at int) []wire.Text {
	n := r.asked.Context
	if n == 0 {
		return nil
	}
	var lines []wire.Text
	for at > 0 && len(lines) < n {
		end := at
		if block[at-1] == '\n' {
			end--
		}
		at = bytes.LastIndexByte(block[:end], '\n') + 1
		line, _ := r.cut(block[at:end])
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	missing := min(n-len(lines), len(r.before))
	return append(slices.Clone(r.before[len(r.before)-missing:]), lines...)
}

var newline = []byte("\n")

func lineEnd(block []byte, start int) int {
	if i := bytes.IndexByte(block[start:], '\n'); i >= 0 {
		return start + i
	}
	return len(block)
}

// next returns the offset of the next matching line from at on, and the column of the
// match in it, or -1.
func (r *searchedFile) next(block []byte, at int) (start, column int) {
	for at < len(block) {
		start = at
		if !r.byLine { // skip to the next match in the block
			found := r.pattern.FindIndex(block[at:])
			if found == nil {
				return -1, 0
			}
			start = at + bytes.LastIndexByte(block[at:at+found[0]], '\n') + 1
		}
		end := lineEnd(block, start)
		if start == len(block) { // behind the last line
			return -1, 0
		}
		if found := r.pattern.FindIndex(block[start:end]); found != nil {
			return start, found[0]
		}
		at = end + 1
	}
	return -1, 0
}
