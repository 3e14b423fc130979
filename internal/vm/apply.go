package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/vm/lima"
	"github.com/atoll-run/atoll/internal/vm/profile"
	"github.com/atoll-run/atoll/internal/vm/steps"
	"github.com/atoll-run/atoll/internal/vm/takeover"
)

// maxApply bounds the bytes of one batch, which are held in memory.
const maxApply = 256 << 20

// Applied is what was applied to the files of this machine.
type Applied struct {
	ID    string   `json:"id,omitempty"` // undoes it
	Files []string `json:"files"`
	Left  []string `json:"left"` // what waits for another decision
}

// Apply applies what passes the gate inside to the project: the named paths, or all. The
// content is that which the gate judged; anything else is refused.
func (m *Manager) Apply(ctx context.Context, paths []string, all bool) (*Applied, error) {
	v, _, err := m.running(ctx)
	if err != nil {
		return nil, err
	}
	tree, err := m.review(ctx, v)
	if err != nil {
		return nil, err
	}
	chosen, left, err := choose(tree, paths, all)
	if err != nil || len(chosen) == 0 {
		return &Applied{Files: []string{}, Left: left}, err
	}
	changes, err := m.fetch(ctx, v, tree.ID, chosen)
	if err != nil {
		return nil, err
	}
	if again, err := m.review(ctx, v); err != nil || again.Hash != tree.Hash {
		return nil, errhint.With(errors.Join(errors.New("files changed meanwhile"), err), "look at `atoll sync status`, and apply again")
	}
	mounts, err := profile.Mounts(&m.Profile, m.Host)
	if err != nil {
		return nil, err
	}
	id, err := takeover.Apply(mounts[0].Source, m.appliedDir(), changes)
	if err != nil {
		return nil, err
	}
	files := make([]string, 0, len(changes))
	for i := range changes {
		files = append(files, changes[i].Path)
	}
	return &Applied{id, files, left}, nil
}

// Undo puts back what a batch changed.
func (m *Manager) Undo(id string) ([]string, error) {
	mounts, err := profile.Mounts(&m.Profile, m.Host)
	if err != nil {
		return nil, err
	}
	return takeover.Undo(mounts[0].Source, m.appliedDir(), id)
}

func (m *Manager) appliedDir() string { return filepath.Join(m.StateDir, "vm-applied", m.Profile.Name) }

var overlayID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$`)

// review asks the gate inside what waits in the project.
func (m *Manager) review(ctx context.Context, v *lima.VM) (*api.SyncTree, error) {
	out, err := v.Run(ctx, "cd "+profile.ProjectPoint+" && "+strings.Join(asGateway[1:], " ")+" "+steps.ProgramFile+" sync review --json", nil)
	if err != nil && strings.Contains(err.Error(), "there is no overlay") {
		return &api.SyncTree{}, nil
	}
	if err != nil {
		return nil, err
	}
	tree := &api.SyncTree{}
	if err := json.Unmarshal([]byte(out), tree); err != nil {
		return nil, fmt.Errorf("what waits: %w", err)
	}
	if !overlayID.MatchString(tree.ID) || tree.Kind != "copy" {
		return nil, fmt.Errorf("the overlay %q of kind %q cannot be read from here", tree.ID, tree.Kind)
	}
	return tree, nil
}

// choose returns the entries that are applied, and the paths of those that are not.
func choose(t *api.SyncTree, paths []string, all bool) (chosen []api.SyncEntry, left []string, err error) {
	left = []string{}
	found := map[string]bool{}
	for i := range t.Entries {
		e := &t.Entries[i]
		if !all && !slices.Contains(paths, e.Path) {
			continue
		}
		found[e.Path] = true
		if e.Verdict != api.SyncPass || e.Kind == "special" || e.Kind == "replaced" || e.Kind == "mode" && e.SHA256 == "" {
			left = append(left, e.Path)
			continue
		}
		chosen = append(chosen, *e)
	}
	for _, p := range paths {
		if !found[p] {
			return nil, nil, errhint.With(fmt.Errorf("%s is no change that waits", p), "`atoll sync status` lists them")
		}
	}
	return chosen, left, nil
}

// fetch reads the content of entries from the overlay inside, and compares each with the
// hash that the gate judged.
func (m *Manager) fetch(ctx context.Context, v *lima.VM, id string, entries []api.SyncEntry) (changes []takeover.Change, err error) {
	var total int64
	for i := range entries {
		e := &entries[i]
		if total += e.Size; total > maxApply || e.Size < 0 {
			return nil, errhint.With(fmt.Errorf("more than %d bytes wait", maxApply), "apply them in several parts, by their paths")
		}
		mode, err := strconv.ParseUint(strings.TrimPrefix("0"+e.Mode, "0o"), 8, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: mode %q", e.Path, e.Mode)
		}
		c := takeover.Change{Path: e.Path, Delete: e.Kind == "deleted", Dir: e.IsDir, Link: e.Link, Mode: fs.FileMode(mode) & 0o755}
		if !c.Delete && !c.Dir && c.Link == "" {
			if c.Content, err = m.content(ctx, v, id, e); err != nil {
				return nil, err
			}
		}
		changes = append(changes, c)
		if e.Kind == "renamed" {
			changes = append(changes, takeover.Change{Path: e.From, Delete: true})
		}
	}
	return changes, nil
}

// content reads one file of an overlay, as the user of the gateway. What the file is by
// then does not matter: other content than the judged one is refused.
func (m *Manager) content(ctx context.Context, v *lima.VM, id string, e *api.SyncEntry) ([]byte, error) {
	var out bytes.Buffer
	script := fmt.Sprintf(`IFS= read -r name; f="/var/lib/atoll/overlay/%s/0/tree/$name"; [ -f "$f" ] && exec timeout 60 head -c %d -- "$f"`, id, e.Size+1)
	if strings.ContainsAny(e.Path, "\n\x00") {
		return nil, fmt.Errorf("%q cannot be read", e.Path)
	}
	err := v.Read(ctx, []string{"sudo", "runuser", "-u", "atoll", "--", "sh", "-euc", script}, strings.NewReader(e.Path+"\n"), &out, e.Size+1)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Path, err)
	}
	if takeover.Sum(out.Bytes()) != e.SHA256 {
		return nil, errhint.With(fmt.Errorf("%s is not what the gate judged", e.Path), "look at `atoll sync status`, and apply again")
	}
	return out.Bytes(), nil
}
