package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	segmentSuffix = ".audit"
	headSuffix    = ".head"
	hashWidth     = 2 * sha256.Size
	maxLine       = 1 << 20 // a first line names many segments
)

// The kinds of control lines; every other kind is a Record's.
const (
	kindSegment    = "segment"    // the first line
	kindCheckpoint = "checkpoint" // signs everything before it
	kindClose      = "close"      // the last checkpoint
	kindRetire     = "retire"     // names segments that retention removed
	kindDropped    = "dropped"    // counts records that were too many
)

func controlKinds() [5]string {
	return [...]string{kindSegment, kindCheckpoint, kindClose, kindRetire, kindDropped}
}

// controlLine is a line of the log itself, not a record.
type controlLine struct {
	Time    string `json:"time"`
	Kind    string `json:"kind"`
	Segment string `json:"segment,omitempty"`
	Key     string `json:"key,omitempty"`
	Heads   []Head `json:"heads,omitempty"`
	Retired []Head `json:"retired,omitempty"`
	Dropped int64  `json:"dropped,omitempty"`
	Since   string `json:"since,omitempty"`
	Sig     string `json:"sig,omitempty"`
}

// Head is how far a segment reached: its last line and that line's hash.
type Head struct {
	Segment string `json:"segment"`
	Lines   int64  `json:"lines"`
	Hash    string `json:"hash"`
	State   string `json:"state,omitempty"`
	// Tail and TailHash are the bytes after the last whole line of a torn
	// segment.
	Tail     int64  `json:"tail,omitempty"`
	TailHash string `json:"tailHash,omitempty"`
	Sig      string `json:"sig,omitempty"` // in the file beside the segment
}

// The states of a segment.
const (
	stateOpen   = "open"   // its writer lives
	stateClosed = "closed" // it ends with a last checkpoint
	stateTorn   = "torn"   // its writer died
)

// segment is a file being written.
type segment struct {
	dir, name string
	file      *os.File
	key       ed25519.PrivateKey
	lines     int64
	size      int64
	hash      [sha256.Size]byte
	opened    time.Time
	signed    int64 // lines that a checkpoint covers
	buffer    []byte
}

func chainStart(name string) [sha256.Size]byte {
	return sha256.Sum256([]byte("atoll audit segment " + name + "\n"))
}

// createSegment begins a segment whose first line names the heads before it.
func createSegment(dir string, key ed25519.PrivateKey, now time.Time) (*segment, error) {
	heads, err := headsToName(dir)
	if err != nil {
		return nil, err
	}
	name := now.UTC().Format("20060102T150405.000Z") + "-" + rand.Text()
	// It gets its name when it is locked and has its first line: a segment without
	// a lock counts as one whose writer is dead.
	path := filepath.Join(dir, name+segmentSuffix)
	file, err := os.OpenFile(path+newSuffix, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	s := &segment{dir: dir, name: name, file: file, key: key, hash: chainStart(name), opened: now}
	whole := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &whole); err != nil {
		return nil, errors.Join(fmt.Errorf("audit log: %w", err), file.Close(), os.Remove(path+newSuffix))
	}
	s.addControl(now, &controlLine{Kind: kindSegment, Segment: name, Key: encodeKey(key.Public().(ed25519.PublicKey)), Heads: heads})
	if err := s.write(); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path+newSuffix))
	}
	if err := errors.Join(os.Rename(path+newSuffix, path), syncDir(dir)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// addRecord adds a line to what write writes: its hash, its number, its text.
func (s *segment) addRecord(body []byte) {
	s.lines++
	at := len(s.buffer)
	s.buffer = append(s.buffer, make([]byte, hashWidth)...)
	s.buffer = append(s.buffer, ' ')
	s.buffer = strconv.AppendInt(s.buffer, s.lines, 10)
	s.buffer = append(s.buffer, ' ')
	s.buffer = append(s.buffer, body...)
	s.hash = chain(s.hash, s.buffer[at+hashWidth+1:])
	hex.Encode(s.buffer[at:], s.hash[:])
	s.buffer = append(s.buffer, '\n')
}

// chain is the hash of a line's number and text after the line before it.
func chain(before [sha256.Size]byte, text []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(before[:])
	h.Write(text)
	h.Sum(sum[:0])
	return sum
}

func (s *segment) addControl(now time.Time, n *controlLine) {
	n.Time = stamp(now)
	body, err := json.Marshal(n)
	if err != nil { // a struct of texts and numbers
		panic(err)
	}
	s.addRecord(body)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// checkpoint signs everything before it.
func (s *segment) checkpoint(now time.Time, kind string) {
	s.addControl(now, &controlLine{Kind: kind, Sig: sign(s.key, s.name, s.lines, s.hash)})
	s.signed = s.lines
}

func sign(key ed25519.PrivateKey, name string, lines int64, hash [sha256.Size]byte) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(key, signedText(name, lines, hex.EncodeToString(hash[:]))))
}

func signedText(name string, lines int64, hash string) []byte {
	return fmt.Appendf(nil, "atoll audit %s %d %s", name, lines, hash)
}

// write appends what was added. What fails half-way is taken back and stays to
// be written.
func (s *segment) write() error {
	if len(s.buffer) == 0 {
		return nil
	}
	if _, err := s.file.WriteAt(s.buffer, s.size); err != nil {
		return errors.Join(fmt.Errorf("audit log: %w", err), s.file.Truncate(s.size))
	}
	s.size += int64(len(s.buffer))
	s.buffer = s.buffer[:0]
	return nil
}

// publish writes the signed head beside the segment, so that a segment cut
// short afterwards is noticed even before another one names it.
func (s *segment) publish() error {
	if err := s.file.Sync(); err != nil {
		return err
	}
	hash := hex.EncodeToString(s.hash[:])
	head := Head{Segment: s.name, Lines: s.lines, Hash: hash, Sig: sign(s.key, s.name, s.lines, s.hash)}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, s.name+headSuffix)
	if err := os.WriteFile(path+newSuffix, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+newSuffix, path)
}

// close ends the segment for good.
func (s *segment) close(now time.Time) error {
	s.checkpoint(now, kindClose)
	return errors.Join(s.write(), s.publish(), s.file.Close())
}

// list returns the names of a directory's segments, the oldest first.
func list(dir, suffix string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			names = append(names, name)
		}
	}
	return names, nil // ReadDir sorts, and names begin with the time
}
