package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/contentpolicy"
)

const (
	decisionsName = "decisions.json"
	maxReason     = 1000 // bytes
)

// The refusals of a decision.
var (
	ErrUnknownPath = errors.New("is not among the changes that were shown")
	ErrOtherHash   = errors.New("is not what was shown any more")
	ErrNotAllowed  = errors.New("may not be applied")
	ErrNoReason    = errors.New("an override needs a reason")
)

// override is a person's reason to let one change pass.
type override struct {
	Key    string    `json:"key"`
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Time   time.Time `json:"time"`
}

// decisions is what people decided about changes, by path. A decision holds for one
// content, mode and set of findings.
type decisions struct {
	Overrides map[string]override `json:"overrides,omitempty"`
	Rejected  map[string]string   `json:"rejected,omitempty"` // the keys
}

func (g *Gate) loadDecisions() (*decisions, error) {
	d := &decisions{}
	if err := g.readJSON(decisionsName, d); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if d.Overrides == nil {
		d.Overrides = map[string]override{}
	}
	if d.Rejected == nil {
		d.Rejected = map[string]string{}
	}
	return d, nil
}

func (g *Gate) saveDecisions() error { return g.writeJSON(decisionsName, g.decided) }

// identity names what an entry changes.
func (e *Entry) identity() string {
	return sumOf(fmt.Appendf(nil, "%s\x00%o\x00%s\x00%s", e.Kind, e.Mode, e.SHA256, e.Link))
}

// key names what an entry changes and what was found in it.
func (e *Entry) key() string {
	var rules []string
	for _, f := range e.Reasons {
		if f.Rule != ruleConflict {
			rules = append(rules, f.Rule+" "+f.Detail)
		}
	}
	slices.Sort(rules)
	return sumOf([]byte(e.identity() + strings.Join(rules, "\n")))
}

func (d *decisions) override(e *Entry) *override {
	if o, ok := d.Overrides[e.Path]; ok && o.Key == e.key() {
		return &o
	}
	return nil
}

func (d *decisions) isRejected(e *Entry) bool { return d.Rejected[e.Path] == e.identity() }

// Override lets one change of the last set pass although it needs approval. A
// blocked change passes only if all that blocks it are secrets, and its hash is
// named.
func (g *Gate) Override(path, sum, reason, by string) error {
	set, err := g.Last()
	if err != nil {
		return err
	}
	e := set.find(path)
	switch {
	case e == nil:
		return fmt.Errorf("%q %w", path, ErrUnknownPath)
	case strings.TrimSpace(reason) == "" || len(reason) > maxReason:
		return fmt.Errorf("%w of at most %d bytes", ErrNoReason, maxReason)
	case sum != "" && sum != e.SHA256:
		return fmt.Errorf("%q %w", path, ErrOtherHash)
	case e.Verdict == Blocked && sum == "":
		return fmt.Errorf("%q %w without its hash, because it is blocked", path, ErrNotAllowed)
	case !e.overridable():
		return fmt.Errorf("%q %w: %s", path, ErrNotAllowed, e.why())
	}
	g.decided.Overrides[path] = override{e.key(), reason, by, time.Now().UTC()}
	e.Verdict, e.Overridden = Pass, reason
	if err := errors.Join(g.saveDecisions(), set.seal(), g.writeJSON(setName, set)); err != nil {
		return err
	}
	g.record(audit.FileEvent{Event: "overridden", Path: path, SHA256: e.SHA256, By: by, Reason: reason})
	return nil
}

// overridable reports whether a person may let an entry pass.
func (e *Entry) overridable() bool {
	if e.Verdict == Conflict {
		return false
	}
	for _, f := range e.Reasons {
		if f.Verdict == contentpolicy.Blocked && f.Rule != ruleSecret {
			return false
		}
	}
	return true
}

// why says what keeps an entry from being applied.
func (e *Entry) why() string {
	for _, f := range e.Reasons {
		if e.Verdict != Conflict && f.Verdict == contentpolicy.Blocked || f.Rule == ruleConflict {
			return f.Detail
		}
	}
	if len(e.Reasons) > 0 {
		return e.Reasons[0].Detail
	}
	return string(e.Verdict)
}

// Reject withholds changes until they become others. It returns those of the paths
// that it found.
func (g *Gate) Reject(paths []string, by string) (rejected []Entry, err error) {
	set, err := g.Last()
	if err != nil {
		return nil, err
	}
	set.Entries = slices.DeleteFunc(set.Entries, func(e Entry) bool {
		if !slices.Contains(paths, e.Path) {
			return false
		}
		g.decided.Rejected[e.Path] = e.identity()
		delete(g.decided.Overrides, e.Path)
		rejected = append(rejected, e)
		return true
	})
	if len(rejected) == 0 {
		return nil, nil
	}
	set.withhold(withheldRejected, len(rejected))
	if err := errors.Join(g.saveDecisions(), set.seal(), g.writeJSON(setName, set)); err != nil {
		return nil, err
	}
	for i := range rejected {
		g.record(audit.FileEvent{Event: "rejected", Path: rejected[i].Path, By: by})
	}
	return rejected, nil
}

// withhold counts files in a group.
func (s *Set) withhold(name string, files int) {
	for i := range s.Withheld {
		if s.Withheld[i].Name == name {
			s.Withheld[i].Files += files
			return
		}
	}
	s.Withheld = append(s.Withheld, Group{name, files})
}

// Forget drops what was collected and decided, for changes that were discarded.
// What was applied can still be undone.
func (g *Gate) Forget() error {
	g.decided = &decisions{Overrides: map[string]override{}, Rejected: map[string]string{}}
	empty := &Set{Time: time.Now().UTC(), Entries: []Entry{}}
	return errors.Join(g.saveDecisions(), empty.seal(), g.writeJSON(setName, empty), g.sweepStage(empty))
}
