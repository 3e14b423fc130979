package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// headsToName returns the heads of the segments that no other segment names as
// ended yet.
func headsToName(dir string) ([]Head, error) {
	names, err := list(dir, segmentSuffix)
	if err != nil {
		return nil, err
	}
	ended := map[string]bool{}
	for _, name := range names {
		first, _, err := firstLines(dir, name)
		if err != nil {
			return nil, err
		}
		for _, h := range first.Heads {
			ended[h.Segment] = ended[h.Segment] || h.State != stateOpen
		}
	}
	var heads []Head
	for _, name := range names {
		if ended[name] {
			continue
		}
		head, err := headOf(dir, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // retention was faster
		case err != nil:
			return nil, err
		default:
			heads = append(heads, head)
		}
	}
	return heads, nil
}

// firstLines reads what a segment begins with: whom it names, and what was
// retired when it began. What is not there, or no note, is empty.
func firstLines(dir, name string) (first, second controlLine, err error) {
	f, err := os.Open(filepath.Join(dir, name+segmentSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return first, second, nil
	}
	if err != nil {
		return first, second, fmt.Errorf("audit log: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	lines := bufio.NewReaderSize(f, 64<<10)
	for _, n := range []*controlLine{&first, &second} {
		text, err := readLine(lines)
		if err != nil {
			return first, second, nil
		}
		if l, ok := parseLine(text); ok {
			_ = json.Unmarshal(l.body, n)
		}
	}
	return first, second, nil
}

// errTail is a last line without an end; errLong one longer than maxLine.
var (
	errTail = errors.New("no end of line")
	errLong = errors.New("a line is too long")
)

// readLine reads a line without its end; with an error, what there was of it.
func readLine(r *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := r.ReadSlice('\n')
		whole = append(whole, part...)
		switch {
		case err == nil:
			return whole[:len(whole)-1], nil
		case len(whole) > maxLine:
			return nil, errLong
		case errors.Is(err, io.EOF) && len(whole) > 0:
			return whole, errTail
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// line is one line of a segment.
type line struct {
	hash   [sha256.Size]byte
	number int64
	text   []byte // number and body: what the hash covers
	body   []byte
}

func parseLine(text []byte) (l line, ok bool) {
	if len(text) < hashWidth+4 || text[hashWidth] != ' ' {
		return l, false
	}
	if _, err := hex.Decode(l.hash[:], text[:hashWidth]); err != nil {
		return l, false
	}
	l.text = text[hashWidth+1:]
	number, body, ok := bytes.Cut(l.text, []byte{' '})
	if !ok {
		return l, false
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != string(number) {
		return l, false
	}
	l.number, l.body = n, body
	return l, true
}

// headOf reads how far a segment reached, from its end.
func headOf(dir, name string) (Head, error) {
	f, err := os.Open(filepath.Join(dir, name+segmentSuffix))
	if err != nil {
		return Head{}, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	living := isLocked(f)
	info, err := f.Stat()
	if err != nil {
		return Head{}, err
	}
	window := make([]byte, min(info.Size(), 2*maxLine))
	if _, err := f.ReadAt(window, info.Size()-int64(len(window))); err != nil && !errors.Is(err, io.EOF) {
		return Head{}, err
	}
	return headIn(name, window, living), nil
}

func headIn(name string, window []byte, living bool) Head {
	end := bytes.LastIndexByte(window, '\n') + 1
	h := Head{Segment: name, State: stateTorn, Tail: int64(len(window) - end)}
	start := chainStart(name)
	h.Hash = hex.EncodeToString(start[:])
	if end > 0 {
		text := window[bytes.LastIndexByte(window[:end-1], '\n')+1 : end-1]
		if l, ok := parseLine(text); ok {
			h.Lines, h.Hash = l.number, hex.EncodeToString(l.hash[:])
			var n controlLine
			if json.Unmarshal(l.body, &n) == nil && n.Kind == kindClose {
				h.State = stateClosed
			}
		}
	}
	switch {
	case living && h.State != stateClosed:
		h.State, h.Tail = stateOpen, 0
	case h.Tail > 0:
		sum := sha256.Sum256(window[end:])
		h.State, h.TailHash = stateTorn, hex.EncodeToString(sum[:])
	}
	return h
}

// isLocked reports whether a segment's writer lives.
func isLocked(f *os.File) bool {
	probe := unix.Flock_t{Type: unix.F_RDLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &probe)
	return err != nil || probe.Type != unix.F_UNLCK
}
