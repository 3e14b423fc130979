package audit

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Report is what Verify found.
type Report struct {
	Segments int       `json:"segments"`
	Records  int64     `json:"records"`
	Dropped  int64     `json:"dropped"` // records that were counted only
	Retired  int       `json:"retired"` // segments that retention removed
	Heads    []Head    `json:"heads"`   // keep them elsewhere: they anchor all before them
	Unsigned int64     `json:"unsigned"`
	Problems []Problem `json:"problems"`
}

// Problem is one inconsistency of the log.
type Problem struct {
	Segment string `json:"segment"`
	Line    int64  `json:"line,omitempty"`
	What    string `json:"what"`
}

func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s, line %d: %s", p.Segment, p.Line, p.What)
	}
	return p.Segment + ": " + p.What
}

// VerifyOptions are facts kept outside the directory.
type VerifyOptions struct {
	Key     string // public key in base64; "" is the one in the directory
	Anchors []Head // heads that were seen before and must still be there
}

// Verify reads the whole log. It finds any line that was changed, moved, added
// or taken out, any segment that was removed or cut short and that another
// segment, its own head file or an anchor names. The error is about reading;
// what is wrong with the log is in the report.
func Verify(dir string, o VerifyOptions) (*Report, error) {
	v, err := newVerifier(dir, o)
	if err != nil {
		return nil, err
	}
	for _, name := range v.names {
		if err := v.segment(name); err != nil {
			return nil, err
		}
	}
	v.compare()
	return v.report, nil
}

// verifier collects facts of all segments, then compares what they say of each
// other.
type verifier struct {
	dir     string
	key     ed25519.PublicKey
	names   []string
	report  *Report
	claims  []claim               // what must be true of segments
	wanted  map[string]lineHashes // lines whose hash some claim asks for
	found   map[string]*segmentFacts
	retired map[string]bool
}

type claim struct {
	by string
	Head
}

type lineHashes map[int64]string

// segmentFacts are what is true of one segment.
type segmentFacts struct {
	lines    int64
	closed   bool
	living   bool
	tail     int64
	tailHash string
}

func newVerifier(dir string, o VerifyOptions) (*verifier, error) {
	if o.Key == "" {
		var err error
		if o.Key, err = PublicKey(dir); err != nil {
			return nil, err
		}
	}
	key, err := base64.StdEncoding.DecodeString(o.Key)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("the key to verify with is no public key")
	}
	v := &verifier{dir: dir, key: key, report: &Report{Problems: []Problem{}, Heads: []Head{}}, wanted: map[string]lineHashes{}, found: map[string]*segmentFacts{}, retired: map[string]bool{}}
	if v.names, err = list(dir, segmentSuffix); err != nil {
		return nil, err
	}
	for _, h := range o.Anchors {
		v.claim("the anchor", h)
	}
	return v, v.collect()
}

// collect takes the claims of first lines and head files.
func (v *verifier) collect() error {
	for _, name := range v.names {
		first, _, err := firstLines(v.dir, name)
		if err != nil {
			return err
		}
		for _, h := range first.Heads {
			v.claim(name, h)
		}
	}
	heads, err := list(v.dir, headSuffix)
	if err != nil {
		return err
	}
	for _, name := range heads {
		if err := v.headFile(name); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) headFile(name string) error {
	text, err := os.ReadFile(filepath.Join(v.dir, name+headSuffix))
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	var h Head
	if json.Unmarshal(text, &h) != nil || h.Segment != name || !v.signed(name, h.Lines, h.Hash, h.Sig) {
		v.problem(name, 0, "its head file is not one that this log's key signed")
		return nil
	}
	h.State = stateOpen
	v.claim("its head file", h)
	return nil
}

func (v *verifier) claim(by string, h Head) {
	v.claims = append(v.claims, claim{by, h})
	if v.wanted[h.Segment] == nil {
		v.wanted[h.Segment] = lineHashes{}
	}
	v.wanted[h.Segment][h.Lines] = ""
}

func (v *verifier) problem(segment string, line int64, what string) {
	const most = 1000
	if len(v.report.Problems) < most {
		v.report.Problems = append(v.report.Problems, Problem{segment, line, what})
	}
}

func (v *verifier) signed(name string, lines int64, hash, sig string) bool {
	raw, err := base64.StdEncoding.DecodeString(sig)
	return err == nil && ed25519.Verify(v.key, signedText(name, lines, hash), raw)
}

// segment reads one segment from its first line to its last.
func (v *verifier) segment(name string) error {
	f, err := os.Open(filepath.Join(v.dir, name+segmentSuffix))
	if errors.Is(err, fs.ErrNotExist) { // retention, just now; a control line says so
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	r := &segmentReader{verifier: v, name: name, hash: chainStart(name), segmentFacts: segmentFacts{living: isLocked(f)}}
	lines := bufio.NewReaderSize(f, 256<<10)
	for {
		text, err := readLine(lines)
		switch {
		case errors.Is(err, io.EOF):
			r.finish(nil)
			return nil
		case errors.Is(err, errTail):
			r.finish(text)
			return nil
		case errors.Is(err, errLong):
			v.problem(name, r.lines+1, err.Error())
			r.finish(nil)
			return nil
		case err != nil:
			return fmt.Errorf("audit log: %w", err)
		}
		r.line(text)
	}
}

// segmentReader is a segment being read.
type segmentReader struct {
	*verifier
	name     string
	hash     [sha256.Size]byte
	unsigned int64
	segmentFacts
}

func (r *segmentReader) line(text []byte) {
	r.lines++
	l, ok := parseLine(text)
	sum := chain(r.hash, l.text)
	switch {
	case !ok:
		r.problem(r.name, r.lines, "it is not a line of this log")
	case r.closed:
		r.problem(r.name, r.lines, "it comes after the segment was closed")
	case l.number != r.lines || sum != l.hash:
		r.problem(r.name, r.lines, "its hash does not follow from the lines before it")
	}
	before := r.hash
	if ok { // go on from what is written, so that one change is one problem
		r.hash = l.hash
	}
	if _, asked := r.wanted[r.name][r.lines]; asked {
		r.wanted[r.name][r.lines] = hex.EncodeToString(sum[:])
	}
	r.readControl(l.body, before)
}

// readControl interprets control lines.
func (r *segmentReader) readControl(body []byte, before [sha256.Size]byte) {
	r.unsigned++
	var n controlLine
	if !isControlLine(body) || json.Unmarshal(body, &n) != nil {
		if r.lines == 1 {
			r.problem(r.name, 1, "the segment does not begin as segments do")
			return
		}
		r.report.Records++
		return
	}
	switch n.Kind {
	case kindSegment:
		if r.lines != 1 || n.Segment != r.name || n.Key != encodeKey(r.key) {
			r.problem(r.name, r.lines, "it names another segment or another key")
		}
	case kindCheckpoint, kindClose:
		if !r.signed(r.name, r.lines-1, hex.EncodeToString(before[:]), n.Sig) {
			r.problem(r.name, r.lines, "its signature is not this log's")
		}
		r.unsigned = 0
		r.closed = n.Kind == kindClose
	case kindRetire:
		for _, h := range n.Retired {
			r.retired[h.Segment] = true
		}
	case kindDropped:
		r.report.Dropped += n.Dropped
	}
}

// isControlLine reports whether a line may be a control line, without parsing it.
func isControlLine(body []byte) bool {
	for _, kind := range controlKinds() {
		if bytes.Contains(body[:min(len(body), 80)], []byte(`,"kind":"`+kind+`"`)) {
			return true
		}
	}
	return false
}

// finish notes how the segment ends.
func (r *segmentReader) finish(tail []byte) {
	r.report.Segments++
	r.report.Unsigned += r.unsigned
	if len(tail) > 0 {
		sum := sha256.Sum256(tail)
		r.tail, r.tailHash = int64(len(tail)), hex.EncodeToString(sum[:])
	}
	if r.closed && r.tail > 0 {
		r.problem(r.name, r.lines+1, "something comes after the segment was closed")
	}
	found := r.segmentFacts
	r.found[r.name] = &found
	r.report.Heads = append(r.report.Heads, Head{Segment: r.name, Lines: r.lines, Hash: hex.EncodeToString(r.hash[:])})
}

// compare checks what segments, head files and anchors say of segments.
func (v *verifier) compare() {
	for _, c := range v.claims {
		v.compareOne(c)
	}
	v.report.Retired = len(v.retired)
}

func (v *verifier) compareOne(c claim) {
	f := v.found[c.Segment]
	switch {
	case f == nil && v.retired[c.Segment]:
	case f == nil:
		v.problem(c.Segment, 0, "the segment is missing; "+c.by+" names it")
	case f.lines < c.Lines:
		v.problem(c.Segment, f.lines, fmt.Sprintf("the segment ends here; %s knows %d lines", c.by, c.Lines))
	case c.Lines > 0 && v.wanted[c.Segment][c.Lines] != c.Hash:
		v.problem(c.Segment, c.Lines, "the line is not the one that "+c.by+" knows")
	case c.State == stateClosed && !f.closed:
		v.problem(c.Segment, f.lines, "the segment's end is missing; "+c.by+" saw it closed")
	case c.State == stateTorn && (f.lines != c.Lines || f.tail != c.Tail || f.tailHash != c.TailHash):
		v.problem(c.Segment, f.lines, "the segment does not end where "+c.by+" found it torn")
	}
}
