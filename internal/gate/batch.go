package gate

import (
	"crypto/rand"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// Result is how a batch ended.
type Result string

// The results.
const (
	ResultApplied   Result = "applied"
	ResultTakenBack Result = "taken-back" // the base is as before
)

// content is what a path has, or shall have.
type content struct {
	Type   fileType `json:"type"`
	Mode   uint32   `json:"mode"` // permission bits
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	SHA256 string   `json:"sha256,omitempty"`
	Link   string   `json:"link,omitempty"`
	// Of what is there already:
	ID    inode `json:"id,omitzero"`
	Size  int64 `json:"size,omitempty"`
	Mtime int64 `json:"mtime,omitempty"`
	Ctime int64 `json:"ctime,omitempty"`
}

// fileType is the type of a file that the gate writes.
type fileType string

// The types.
const (
	typeFile fileType = "file"
	typeLink fileType = "link"
	typeDir  fileType = "dir"
)

// inode identifies a file while it exists.
type inode struct {
	Device uint64 `json:"dev"`
	Number uint64 `json:"ino"`
}

// step is what a batch does at one path.
type step struct {
	Path   string   `json:"path"`
	Before *content `json:"before,omitempty"` // nil: nothing
	After  *content `json:"after,omitempty"`  // nil: nothing
	// From is the kept file that the content is taken from, "ID/N"; "" is the stage.
	From string `json:"from,omitempty"`
	// Wave is when it is done: all steps of a wave are done before the next.
	Wave int `json:"wave"`
	// Implied says that it is a directory above an approved file.
	Implied bool `json:"implied,omitempty"`
}

// isDir reports whether the step makes or removes a directory.
func (s *step) isDir() bool {
	return s.After != nil && s.After.Type == typeDir || s.After == nil && s.Before.Type == typeDir
}

func (s *step) valid() bool {
	return filepath.IsLocal(s.Path) && s.Path != "." && filepath.Clean(s.Path) == s.Path && utf8.ValidString(s.Path) &&
		(s.Before != nil || s.After != nil) && (s.From == "" || validFrom(s.From)) &&
		(s.After == nil || s.After.SHA256 == "" || validSum(s.After.SHA256))
}

func validFrom(from string) bool {
	id, n, ok := strings.Cut(from, "/")
	return ok && validID(id) && n != "" && strings.Trim(n, "0123456789") == ""
}

func validSum(sum string) bool {
	return len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == ""
}

// batch is a group of steps that is applied as a whole.
type batch struct {
	id     string
	time   time.Time
	by     string
	undoes string
	steps  []step
	new    map[int]inode // the new files by their steps, once they are ready
	phase  phase
	result Result
	left   []string

	removed map[string]bool // directories, once they were asked for
}

const (
	idPrefix = "s-"
	idLength = 8
)

func newID() string { return idPrefix + strings.ToLower(rand.Text()[:idLength]) }

func validID(id string) bool {
	text, ok := strings.CutPrefix(id, idPrefix)
	return ok && len(text) == idLength && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// TempPrefix begins the names of files that are being applied.
const TempPrefix = ".atoll-sync-"

// temp is the name of the new file of a step. After the exchange it is the name of
// what was there before.
func (b *batch) temp(n int) string { return fmt.Sprintf("%s%s-%d", TempPrefix, b.id, n) }

// tempPath is where that name is: in the directory of the step's path, or above it
// if the batch removes that directory.
func (b *batch) tempPath(n int) string {
	dir := path.Dir(b.steps[n].Path)
	for b.steps[n].After == nil && b.removesDir(dir) {
		dir = path.Dir(dir)
	}
	return path.Join(dir, b.temp(n))
}

func (b *batch) removesDir(dir string) bool {
	if b.removed == nil {
		b.removed = map[string]bool{}
		for i := range b.steps {
			if s := &b.steps[i]; s.After == nil && s.Before.Type == typeDir {
				b.removed[s.Path] = true
			}
		}
	}
	return b.removed[dir]
}

// batches returns the batches of the journal, the oldest first.
func (j *journal) batches() []*batch {
	var all []*batch
	byID := map[string]*batch{}
	for i := range j.records {
		r := &j.records[i]
		b := byID[r.ID]
		if r.Phase == begun && b == nil {
			b = &batch{id: r.ID, time: r.Time, by: r.By, undoes: r.Undoes, steps: r.Steps, new: map[int]inode{}}
			byID[r.ID] = b
			all = append(all, b)
		}
		if b != nil {
			b.reach(r)
		}
	}
	return all
}

// reach moves a batch on to the phase of a record.
func (b *batch) reach(r *record) {
	b.phase = r.Phase
	switch r.Phase {
	case ready:
		maps.Copy(b.new, r.New)
	case ended:
		b.result, b.left = r.Result, r.Left
	}
}
