package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
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

// What is said if the gate inside could not be told what was applied or put back.
const (
	applyNotTold = "the gate inside was not told: a file that is changed there again will be in conflict"
	undoNotTold  = "the gate inside was not told: there it counts as an edit of yours, which the agent gets"
)

// inside asks the gate in a virtual machine.
type inside struct {
	ctx context.Context
	vm  *lima.VM
}

// tree is an overlay of the project with what waits in it.
type tree struct {
	*api.SyncTree
	of    *api.SyncSubject
	below string // where its base is in the project
}

// path returns where a path of the overlay is in the project.
func (t *tree) path(name string) string { return path.Join(t.below, name) }

// atoll runs a verb as the user of the gateway, in a directory.
func (i *inside) atoll(dir string, in io.Reader, answer any, args ...string) error {
	words := append(append([]string{}, asGateway[1:]...), steps.ProgramFile)
	for _, a := range args {
		words = append(words, quote(a))
	}
	out, err := i.vm.Run(i.ctx, "cd "+quote(dir)+" && "+strings.Join(words, " "), in)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), answer)
}

// quote returns a word for a shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// overlays returns every overlay inside, with how much waits in each.
func (i *inside) overlays() (list []api.SyncOverlay, err error) {
	if err := i.atoll("/", nil, &list, "sync", "status", "--all", "--json"); err != nil {
		return nil, fmt.Errorf("what waits: %w", err)
	}
	return list, nil
}

var overlayID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$`)

// reviews asks the gate inside about every overlay of the project in which something waits.
func (i *inside) reviews() (trees []tree, err error) {
	list, err := i.overlays()
	if err != nil {
		return nil, err
	}
	for n := range list {
		o := &list[n]
		below, err := filepath.Rel(profile.ProjectPoint, o.Base)
		if err != nil || !filepath.IsLocal(below) || o.Waiting == 0 || o.Subject == nil {
			continue
		}
		if !overlayID.MatchString(o.ID) || o.Kind != "copy" {
			return nil, fmt.Errorf("the overlay %q of kind %q cannot be read from here", o.ID, o.Kind)
		}
		t := tree{&api.SyncTree{}, o.Subject, filepath.ToSlash(below)}
		if err := i.atoll(dirOf(o.Subject), nil, t.SyncTree, append([]string{"sync", "review", "--json"}, flagsOf(o.Subject)...)...); err != nil {
			return nil, fmt.Errorf("what waits: %w", err)
		}
		if t.ID != o.ID {
			return nil, fmt.Errorf("the gate showed the overlay %q for %q", t.ID, o.ID)
		}
		trees = append(trees, t)
	}
	return trees, nil
}

// dirOf returns the directory that a verb about a subject is called in.
func dirOf(s *api.SyncSubject) string {
	if s.Directory != "" {
		return s.Directory
	}
	return "/"
}

// flagsOf names a subject to verbs of sync.
func flagsOf(s *api.SyncSubject) (flags []string) {
	for _, f := range []struct{ name, value string }{{"run-id", s.Run}, {"agent", s.Agent}, {"session", s.Session}, {"account", s.Account}, {"scope", s.Scope}} {
		if f.value != "" {
			flags = append(flags, "--"+f.name+"="+f.value)
		}
	}
	return flags
}

// fetch reads the content of entries from the overlays inside, and compares each with the
// hash that the gate judged.
func (i *inside) fetch(entries []entry) (changes []takeover.Change, err error) {
	var total int64
	for n := range entries {
		e := &entries[n]
		if total += e.Size; total > maxApply || e.Size < 0 {
			return nil, errhint.With(fmt.Errorf("more than %d bytes wait", maxApply), "apply them in several parts, by their paths")
		}
		mode, err := strconv.ParseUint("0"+e.Mode, 8, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: mode %q", e.path, e.Mode)
		}
		c := takeover.Change{Path: e.path, Delete: e.Kind == "deleted", Dir: e.IsDir, Link: e.Link, Mode: fs.FileMode(mode) & 0o755, Overlay: e.tree.ID}
		if !c.Delete && !c.Dir && c.Link == "" {
			if c.Content, err = i.content(e); err != nil {
				return nil, err
			}
		}
		changes = append(changes, c)
		if e.Kind == "renamed" {
			changes = append(changes, takeover.Change{Path: e.tree.path(e.From), Delete: true, Overlay: e.tree.ID})
		}
	}
	return changes, nil
}

// content reads one file of an overlay, as the user of the gateway. What the file is by
// then does not matter: other content than the judged one is refused.
func (i *inside) content(e *entry) ([]byte, error) {
	var out bytes.Buffer
	script := fmt.Sprintf(`IFS= read -r name; f="/var/lib/atoll/overlay/%s/0/tree/$name"; [ -f "$f" ] && exec timeout 60 head -c %d -- "$f"`, e.tree.ID, e.Size+1)
	if strings.ContainsAny(e.Path, "\n\x00") {
		return nil, fmt.Errorf("%q cannot be read", e.Path)
	}
	err := i.vm.Read(i.ctx, []string{"sudo", "runuser", "-u", "atoll", "--", "sh", "-euc", script}, strings.NewReader(e.Path+"\n"), &out, e.Size+1)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.path, err)
	}
	if takeover.Sum(out.Bytes()) != e.SHA256 {
		return nil, errhint.With(fmt.Errorf("%s is not what the gate judged", e.path), "look at `atoll sync status`, and apply again")
	}
	return out.Bytes(), nil
}

// tell tells the gate inside what the project has by now, so that it counts as what the
// agents began with. It returns the note if that fails: the files are in place.
func (i *inside) tell(batch *takeover.Batch, note string) string {
	list, err := i.overlays()
	for n := range list {
		if states := statesOf(batch, &list[n]); len(states) > 0 {
			err = errors.Join(err, i.applied(list[n].Subject, states))
		}
	}
	if err != nil {
		return note
	}
	return ""
}

// statesOf returns what a batch left at the paths of one overlay.
func statesOf(batch *takeover.Batch, o *api.SyncOverlay) map[string]string {
	states := map[string]string{}
	for _, p := range batch.Paths {
		rel, err := filepath.Rel(o.Base, path.Join(profile.ProjectPoint, p.Path))
		if err == nil && filepath.IsLocal(rel) && p.Overlay == o.ID && o.Subject != nil {
			states[filepath.ToSlash(rel)] = p.State
		}
	}
	return states
}

// applied tells the gate of one subject.
func (i *inside) applied(of *api.SyncSubject, states map[string]string) error {
	text, err := json.Marshal(states)
	if err != nil {
		return err
	}
	var done api.SyncDone
	return i.atoll(dirOf(of), bytes.NewReader(text), &done, append([]string{"sync", "applied", "--json"}, flagsOf(of)...)...)
}
