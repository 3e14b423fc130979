package synccmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
)

// shown is what a person was shown of an overlay, by path: the content's hash and the
// kind of change. An approval holds for that and nothing else, however long after.
type shown map[string]string

// errChanged means that a change is not what the person was shown.
var errChanged = errors.New("changed since it was shown")

func shownAs(e *api.SyncEntry) string { return e.Kind + " " + e.SHA256 + " " + e.Mode + " " + e.Link }

// shownFile returns where it is kept: beside the gate's own files.
func (v *verb) shownFile(t *api.SyncTree) (string, error) {
	settings, err := v.Load()
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(t.ID) || filepath.Base(t.ID) != t.ID {
		return "", fmt.Errorf("%q is no overlay's name", t.ID)
	}
	return filepath.Join(settings.Paths.AtollState, "sync", t.ID, fmt.Sprintf("shown-%d.json", t.Tree)), nil
}

// shown returns what was shown; nil if nothing was.
func (v *verb) shown(t *api.SyncTree) (shown, error) {
	name, err := v.shownFile(t)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	list := shown{}
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	return list, err
}

// remember notes that these entries were shown, beside what was shown before. Paths
// that did not change any more are dropped.
func (v *verb) remember(t *api.SyncTree, entries []api.SyncEntry) {
	before, err := v.shown(t)
	if err != nil {
		before = nil // it is written anew
	}
	list := shown{}
	for i := range t.Entries {
		if as, ok := before[t.Entries[i].Path]; ok {
			list[t.Entries[i].Path] = as
		}
	}
	for i := range entries {
		list[entries[i].Path] = shownAs(&entries[i])
	}
	if err := v.writeShown(t, list); err != nil {
		v.Notice("what was shown could not be noted: " + err.Error())
	}
}

func (v *verb) writeShown(t *api.SyncTree, list shown) error {
	name, err := v.shownFile(t)
	if err != nil {
		return err
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	fresh := name + ".new"
	if err := os.WriteFile(fresh, data, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, name)
}

// checkShown refuses entries that are not what was shown. Where nothing was shown
// yet, what is there now is approved as the command line says.
func (v *verb) checkShown(t *api.SyncTree, entries []api.SyncEntry) error {
	list, err := v.shown(t)
	if err != nil || list == nil {
		return err
	}
	for i := range entries {
		if as, ok := list[entries[i].Path]; ok && as == shownAs(&entries[i]) {
			continue
		}
		return console.WithCode(console.ExitDenied, errhint.With(fmt.Errorf("%s: %w", console.Printable(entries[i].Path), errChanged), "look again: `atoll sync review`, then approve"))
	}
	return nil
}
