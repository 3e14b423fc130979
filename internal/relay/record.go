package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay/content"
)

// Step is the progress of a run's commits. It is saved when what it names is done.
type Step string

// The steps. Those that end a relay are Nothing, Blocked, Failed and Done.
const (
	Taken   Step = "taken"   // the commits are in the quarantine
	Judged  Step = "judged"  // and may be pushed
	Waiting Step = "waiting" // and may be pushed when a person says so
	Blocked Step = "blocked" // and may not
	Pushed  Step = "pushed"  // the branch is on the remote
	Done    Step = "done"    // and so is the pull request
	Nothing Step = "nothing" // there were no commits
)

// Over reports whether nothing more happens without a person.
func (s Step) Over() bool { return s == Done || s == Nothing || s == Blocked || s == Waiting }

// Record is the state of one run's commits.
type Record struct {
	Run      string          `json:"run"`
	Account  string          `json:"account,omitempty"`
	Agent    string          `json:"agent,omitempty"`
	Project  string          `json:"project"`
	Work     Work            `json:"work"`
	Step     Step            `json:"step"`
	Taken    string          `json:"taken,omitempty"` // the agent's head
	Head     string          `json:"head,omitempty"`  // ours
	Report   *content.Report `json:"report,omitempty"`
	Approved string          `json:"approved,omitempty"` // by whom
	Denied   string          `json:"denied,omitempty"`   // by whom
	Held     bool            `json:"held,omitzero"`      // the agent failed: a person decides whether it is pushed
	// Committed says that the last commit is Atoll's, of what the agent did not
	// commit.
	Committed bool `json:"committed,omitzero"`
	// Piece is what this is of another run's work that is not on its branch, for
	// example stashed changes; Pieces are the records of these.
	Piece  string  `json:"piece,omitempty"`
	Pieces []Piece `json:"pieces,omitempty"`
	// Unsaved is why the sandbox may hold work that no record has; "" if it does not.
	Unsaved string    `json:"unsaved,omitempty"`
	Patch   *Patch    `json:"patch,omitempty"` // nil if they are blocked
	PullURL string    `json:"pullUrl,omitempty"`
	Trouble string    `json:"trouble,omitempty"` // why the last attempt ended
	About   About     `json:"about"`
	Changed time.Time `json:"changed"`
}

// Piece is work of a run that is not on its branch: what it is, and the record
// that has it.
type Piece struct {
	What string `json:"what"`
	Run  string `json:"run"`
}

// Open reports whether a step is left that needs no person.
func (r *Record) Open() bool { return !r.Step.Over() && !r.Held }

// About is the text of a pull request about the run.
type About struct {
	Title   string `json:"title,omitempty"`
	Model   string `json:"model,omitempty"`
	Cost    string `json:"cost,omitempty"`
	Variant string `json:"variant,omitempty"`
}

const (
	recordName     = "record.json"
	quarantineName = "quarantine.git"
)

// runDir returns the directory of a run's record and quarantine. It checks the id,
// which comes from outside.
func (r *Relay) runDir(run string) (string, error) {
	if run == "" || len(run) > 128 || strings.ContainsAny(run, "/\x00") || strings.HasPrefix(run, ".") {
		return "", errhint.With(fmt.Errorf("%q is no id of a run", run), "`atoll relay status` lists the runs whose commits are known")
	}
	return filepath.Join(r.dir, "runs", run), nil
}

// Load reads the record of a run; os.ErrNotExist if there is none.
func (r *Relay) Load(run string) (*Record, error) {
	dir, err := r.runDir(run)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return nil, err
	}
	var record Record
	if err := json.Unmarshal(data, &record); err != nil {
		return nil, fmt.Errorf("record of run %s: %w", run, err)
	}
	return &record, nil
}

// List returns every record, the newest first.
func (r *Relay) List() ([]*Record, error) {
	entries, err := os.ReadDir(filepath.Join(r.dir, "runs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var records []*Record
	for _, entry := range entries {
		record, err := r.Load(entry.Name())
		if errors.Is(err, os.ErrNotExist) {
			continue // its commits are being taken
		}
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	slices.SortStableFunc(records, func(a, b *Record) int { return b.Changed.Compare(a.Changed) })
	return records, nil
}

// save writes a record so that a crash leaves the old one or the new one.
func (r *Relay) save(record *Record) error {
	dir, err := r.runDir(record.Run)
	if err != nil {
		return err
	}
	record.Changed = time.Now().UTC()
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	if err := writeAtomic(filepath.Join(dir, recordName), data); err != nil {
		return err
	}
	if r.OnStep != nil {
		r.OnStep(record)
	}
	return nil
}

func writeAtomic(path string, data []byte) error {
	fresh, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	defer os.Remove(fresh.Name()) //nolint:errcheck // renamed, or of no use
	_, err = fresh.Write(data)
	if err := errors.Join(err, fresh.Sync(), fresh.Close()); err != nil {
		return err
	}
	if err := os.Rename(fresh.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
