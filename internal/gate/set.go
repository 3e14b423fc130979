package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// Verdict is what the gate says of an entry.
type Verdict string

// The verdicts. What is withheld is no entry: it is counted in Set.Withheld.
const (
	Pass     Verdict = "pass"     // is applied when it is approved
	Approval Verdict = "approval" // needs an override with a reason
	Blocked  Verdict = "blocked"  // is not applied; a secret may be overridden
	Conflict Verdict = "conflict" // the host's file is not what the agent began with
)

// The rules of findings that decide more than a verdict.
const (
	ruleSecret   = "secret"
	ruleConflict = "conflict"
	ruleHidden   = "hidden"
)

// Entry is one change as it was staged and judged.
type Entry struct {
	Path    string                  `json:"path"`
	From    string                  `json:"from,omitempty"`
	Kind    overlay.ChangeKind      `json:"kind"`
	Mode    fs.FileMode             `json:"mode,omitempty"`    // inside
	OldMode fs.FileMode             `json:"oldMode,omitempty"` // of the base
	Size    int64                   `json:"size,omitempty"`
	SHA256  string                  `json:"sha256,omitempty"` // of the content, or of a link's text
	Link    string                  `json:"link,omitempty"`
	Verdict Verdict                 `json:"verdict"`
	Reasons []contentpolicy.Finding `json:"reasons,omitempty"`
	Added   int                     `json:"added,omitempty"` // lines
	Removed int                     `json:"removed,omitempty"`
	// Overridden is the reason that a person gave for letting it pass.
	Overridden string `json:"overridden,omitempty"`
}

// Group is what is withheld for one reason.
type Group struct {
	Name  string `json:"name"`
	Files int    `json:"files"`
}

// Set is everything that changed, at one moment. Deletions are listed first.
type Set struct {
	Time     time.Time `json:"time"`
	Entries  []Entry   `json:"entries"`
	Withheld []Group   `json:"withheld,omitempty"`
	Modules  []string  `json:"modules,omitempty"` // submodules in which the agent has committed, by their names inside
	Hash     string    `json:"hash"`              // of all of it
}

// Count returns how many entries have a verdict.
func (s *Set) Count(v Verdict) (n int) {
	for i := range s.Entries {
		if s.Entries[i].Verdict == v {
			n++
		}
	}
	return n
}

// find returns the entry of a path, or nil.
func (s *Set) find(path string) *Entry {
	for i := range s.Entries {
		if s.Entries[i].Path == path {
			return &s.Entries[i]
		}
	}
	return nil
}

// seal sets the hash.
func (s *Set) seal() error {
	s.Hash = ""
	data, err := json.Marshal(struct {
		Entries  []Entry
		Withheld []Group
	}{s.Entries, s.Withheld})
	sum := sha256.Sum256(data)
	s.Hash = hex.EncodeToString(sum[:])
	return err
}

const setName = "set.json"

// ErrNoSet means that nothing was collected yet.
var ErrNoSet = errors.New("nothing was collected yet")

// Last returns what the last Collect found: what a person was shown.
func (g *Gate) Last() (*Set, error) {
	var set Set
	err := g.readJSON(setName, &set)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoSet
	}
	return &set, err
}

func (g *Gate) readJSON(name string, into any) error {
	data, err := os.ReadFile(filepath.Join(g.opt.Dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// writeJSON writes a file so that a crash leaves the old one or the new one.
func (g *Gate) writeJSON(name string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	fresh := filepath.Join(g.opt.Dir, name+".new")
	if err := writeSynced(fresh, data); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(g.opt.Dir, name)); err != nil {
		return err
	}
	return syncDir(g.opt.Dir)
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
