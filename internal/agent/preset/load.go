package preset

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config/json5"
	"github.com/atoll-run/atoll/internal/errhint"
)

//go:embed data/*.json5
var data embed.FS

// Dir holds the presets of an installation, below the state directory.
const Dir = "presets"

const (
	suffix = ".json5"
	// MaxFile bounds the file of a preset.
	MaxFile = 256 << 10
	// MaxPresets bounds how many presets an installation has.
	MaxPresets = 100
)

// Builtin returns the presets of the program itself, sorted by id.
var Builtin = sync.OnceValue(func() []*Preset {
	list, err := readAll(data, "data")
	if err != nil {
		panic(err) // a test reads them
	}
	return list
})

// All returns the built-in presets and those of the state directory, which replace
// built-in ones of the same id.
func All(state string) ([]*Preset, error) {
	own, err := readAll(os.DirFS(filepath.Join(state, Dir)), ".")
	if errors.Is(err, fs.ErrNotExist) {
		return Builtin(), nil
	}
	if err != nil {
		return nil, errhint.With(err, "see docs/agent.md for what a preset has")
	}
	replaced := func(p *Preset) bool {
		return slices.ContainsFunc(own, func(o *Preset) bool { return o.ID == p.ID })
	}
	list := append(slices.DeleteFunc(slices.Clone(Builtin()), replaced), own...)
	slices.SortFunc(list, func(a, b *Preset) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// Find returns the preset of a name; the error of an unknown one has the known ones.
func Find(list []*Preset, name string) (*Preset, error) {
	var known []string
	for _, p := range list {
		if p.Is(name) {
			return p, nil
		}
		known = append(known, p.ID)
	}
	return nil, errhint.With(fmt.Errorf("no agent is called %q", name), "known are "+strings.Join(known, ", "))
}

func readAll(from fs.FS, dir string) (list []*Preset, err error) {
	entries, err := fs.ReadDir(from, dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		if len(list) == MaxPresets {
			return nil, fmt.Errorf("there are more than %d presets", MaxPresets)
		}
		p, err := readFile(from, filepath.Join(dir, entry.Name()))
		if err == nil && p.ID != name {
			err = fmt.Errorf("its id is %q", p.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("preset %s: %w", entry.Name(), err)
		}
		list = append(list, p)
	}
	return list, nil
}

func readFile(from fs.FS, name string) (*Preset, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > MaxFile:
		return nil, fmt.Errorf("it has more than %d bytes", MaxFile)
	}
	return Parse(text)
}

// Parse reads a preset and checks it. Members that are not known are refused.
func Parse(text []byte) (*Preset, error) {
	document, err := json5.Parse(text)
	if err != nil {
		return nil, err
	}
	var p Preset
	if err := json.Unmarshal(document.JSON, &p, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if problems := p.check(); len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, "; "))
	}
	return &p, nil
}
