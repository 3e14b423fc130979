package files

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// binaryProbe is how many bytes are examined to tell whether a file is text.
	binaryProbe = 8 << 10
	// maxMatchBytes bounds an encoded match, which has to fit a frame.
	maxMatchBytes = batchSize
	// cutMatch is how much of the line is kept if the match is larger.
	cutMatch = 1 << 10
)

// searchedFile sends the lines that match, of one file or of all beneath a
// directory.
func (c *Call) search(f *wire.File) error {
	if f.Scan == nil || f.Search == nil {
		return wire.Fail(wire.CodeInvalid, "the request lacks its operands")
	}
	s, err := newSearch(f, c.files)
	if err != nil {
		return err
	}
	s.matches = &batch[wire.FileMatch]{w: c.Stream, kind: wire.FrameMatches}
	s.budget.gone = c.stopWhenHostLeaves()
	err = s.run(&f.RootedPath)
	return c.finishScan(&s.totals, err, s.matches.flush)
}

// searchCall is one search that runs.
type searchCall struct {
	totals
	files            *Server
	asked            wire.FileSearch
	budget           *budget
	include, exclude globs
	pattern          *regexp.Regexp
	byLine           bool // the pattern has \A or \z, so lines are matched one by one
	matches          *batch[wire.FileMatch]
	block            *searchBlock
}

func newSearch(f *wire.File, files *Server) (*searchCall, error) {
	s := &searchCall{files: files, asked: *f.Search, budget: newBudget(f.Scan)}
	s.asked.MaxLine = min(max(s.asked.MaxLine, 1), wire.MaxMatchLine)
	s.asked.MaxMatches = min(max(s.asked.MaxMatches, 1), wire.MaxMatches)
	s.asked.Context = min(max(s.asked.Context, 0), wire.MaxContext)
	s.asked.MaxFileSize = min(max(s.asked.MaxFileSize, 0), wire.MaxSearchedFile)
	if s.asked.MaxPerFile <= 0 {
		s.asked.MaxPerFile = s.asked.MaxMatches
	}
	var err error
	if s.include, err = newGlobs(f.Scan.Include); err != nil {
		return nil, err
	}
	if s.exclude, err = newGlobs(f.Scan.Exclude); err != nil {
		return nil, err
	}
	return s, s.compile()
}

// compile compiles the pattern so that ^ and $ match at lines.
func (s *searchCall) compile() error {
	pattern := string(s.asked.Pattern)
	if len(pattern) > wire.MaxPattern || pattern == "" {
		return wire.Fail(wire.CodeInvalid, "the pattern is empty or too long")
	}
	if s.asked.Literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	flags := "(?m)"
	if s.asked.IgnoreCase {
		flags = "(?mi)"
	}
	var err error
	if s.pattern, err = regexp.Compile(flags + pattern); err != nil {
		return wire.Fail(wire.CodeInvalid, err.Error())
	}
	tree, err := syntax.Parse(flags+pattern, syntax.Perl)
	s.byLine = err != nil || mentionsText(tree)
	return nil
}

// mentionsText reports whether an expression contains \A or \z, which match at other
// offsets in a line than in a block.
func mentionsText(re *syntax.Regexp) bool {
	if re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText {
		return true
	}
	return slices.ContainsFunc(re.Sub, mentionsText)
}

// run searches the file or directory at a path.
func (s *searchCall) run(p *wire.RootedPath) error {
	var at *location
	var info *fileInfo
	err := s.files.do(func() (err error) {
		if at, err = s.files.locate(p); err == nil {
			info, err = at.stat()
		}
		return err
	})
	if at != nil {
		defer at.release()
	}
	if err != nil {
		return err
	}
	s.block = searchBlocks.Get().(*searchBlock)
	defer searchBlocks.Put(s.block)
	if info.kind() != wire.KindDir {
		if err := info.refuseIrregular(); err != nil {
			return err
		}
		return s.file(&walkEntry{*at, ".", info})
	}
	var d *dir
	if err := s.files.do(func() (err error) { d, err = at.openDir(); return err }); err != nil {
		return err
	}
	defer d.release()
	w := &walker{files: s.files, budget: s.budget, exclude: s.exclude, visit: s.visit, refused: s.refused}
	return w.walk(d, "", 1)
}

func (s *searchCall) visit(n *walkEntry) error {
	switch {
	case n.info.kind() == wire.KindDir:
		return nil
	case s.include != nil && !s.include.match(n.path):
		return nil
	case n.info.refuseIrregular() != nil:
		s.refused(n.path, n.info.refuseIrregular())
		return nil
	}
	return s.file(n)
}

// file searches one file.
func (s *searchCall) file(n *walkEntry) error {
	if n.info.size > s.asked.MaxFileSize {
		s.Large++
		return nil
	}
	fd, err := s.files.open(n, (*fileInfo).refuseIrregular)
	if err != nil {
		s.refused(n.path, err)
		return nil
	}
	defer s.files.close(fd)
	r := &searchedFile{searchCall: s, path: n.path, left: s.asked.MaxPerFile}
	return r.read(&fileReader{files: s.files, fd: fd, until: s.asked.MaxFileSize})
}

// fileReader reads an open file.
type fileReader struct {
	files  *Server
	fd     int
	offset int64
	until  int64
}

// Read implements io.Reader.
func (r *fileReader) Read(b []byte) (n int, err error) {
	b = b[:min(int64(len(b)), r.until-r.offset)]
	if len(b) == 0 {
		return 0, io.EOF
	}
	err = r.files.do(func() error { n, err = pread(r.fd, b, r.offset); return err })
	r.offset += int64(n)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return n, err
}

// found sends a match.
func (s *searchCall) found(m *wire.FileMatch) error {
	if encoded, err := json.Marshal(m); err != nil || len(encoded) > maxMatchBytes {
		m.Before, m.After, m.Cut = nil, nil, true
		m.Text = m.Text[:min(len(m.Text), cutMatch)]
	}
	if err := s.matches.add(m); err != nil {
		return err
	}
	if s.asked.MaxMatches--; s.asked.MaxMatches == 0 {
		return refuse(wire.CodeTooLarge)
	}
	return nil
}

// cut shortens a line to MaxLine.
func (s *searchCall) cut(line []byte) (wire.Text, bool) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > s.asked.MaxLine {
		return wire.Text(line[:s.asked.MaxLine]), true
	}
	return wire.Text(line), false
}
