package patch_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/tool/patch"
)

// memory is an FS that keeps files in a map and breaks on demand.
type memory struct {
	files    map[string]memoryFile
	versions int

	calls     int   // of methods that change something
	breakAt   int   // the call that fails; 0 for none
	breakErr  error // what it fails with
	afterward bool  // it fails after it had its effect
	onCall    func(m *memory)
}

type memoryFile struct {
	data    string
	mode    fs.FileMode
	version patch.Version
}

func newMemory(files map[string]string) *memory {
	m := &memory{files: map[string]memoryFile{}}
	for name, data := range files {
		m.put(name, data, 0o640)
	}
	return m
}

func (m *memory) put(name, data string, mode fs.FileMode) patch.Version {
	m.versions++
	version := patch.Version(fmt.Sprint("v", m.versions))
	m.files[path.Clean(name)] = memoryFile{data, mode, version}
	return version
}

// contents are the files with their modes, for comparing.
func (m *memory) contents() map[string]string {
	all := map[string]string{}
	for name, f := range m.files {
		all[name] = fmt.Sprintf("%o %s", f.mode, f.data)
	}
	return all
}

// plain are the files without their modes.
func (m *memory) plain() map[string]string {
	all := map[string]string{}
	for name, f := range m.files {
		all[name] = f.data
	}
	return all
}

func (m *memory) ReadFile(ctx context.Context, name string) (patch.File, error) {
	if err := ctx.Err(); err != nil {
		return patch.File{}, err
	}
	f, ok := m.files[path.Clean(name)]
	if !ok {
		for other := range m.files {
			if strings.HasPrefix(other, path.Clean(name)+"/") {
				return patch.File{}, errors.New("is a directory")
			}
		}
		return patch.File{}, fs.ErrNotExist
	}
	return patch.File{Data: []byte(f.data), Mode: f.mode, Version: f.version}, nil
}

// change counts a call, checks the version, and lets the call fail before or
// after its effect.
func (m *memory) change(ctx context.Context, name string, version patch.Version, effect func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.onCall != nil {
		m.onCall(m)
	}
	m.calls++
	broken := m.calls == m.breakAt
	if broken && !m.afterward {
		return m.breakErr
	}
	if m.files[path.Clean(name)].version != version {
		return fmt.Errorf("%s: %w", name, patch.ErrChanged)
	}
	if err := effect(); err != nil {
		return err
	}
	if broken {
		return m.breakErr
	}
	return nil
}

func (m *memory) WriteFile(ctx context.Context, name string, file patch.File) (version patch.Version, err error) {
	err = m.change(ctx, name, file.Version, func() error {
		if err := m.checkParents(name); err != nil {
			return err
		}
		mode := file.Mode
		if mode == 0 {
			mode = 0o644
			if f, ok := m.files[path.Clean(name)]; ok {
				mode = f.mode
			}
		}
		version = m.put(name, string(file.Data), mode)
		return nil
	})
	if err != nil {
		return "", err
	}
	return version, nil
}

func (m *memory) checkParents(name string) error {
	for dir := path.Dir(path.Clean(name)); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if _, isFile := m.files[dir]; isFile {
			return errors.New("not a directory")
		}
	}
	return nil
}

func (m *memory) Rename(ctx context.Context, from, to string, version patch.Version) (after patch.Version, err error) {
	err = m.change(ctx, from, version, func() error {
		if _, exists := m.files[path.Clean(to)]; exists {
			return fmt.Errorf("%s: %w", to, fs.ErrExist)
		}
		if err := m.checkParents(to); err != nil {
			return err
		}
		f := m.files[path.Clean(from)]
		delete(m.files, path.Clean(from))
		after = m.put(to, f.data, f.mode)
		return nil
	})
	if err != nil {
		return "", err
	}
	return after, nil
}

func (m *memory) Remove(ctx context.Context, name string, version patch.Version) error {
	return m.change(ctx, name, version, func() error {
		delete(m.files, path.Clean(name))
		return nil
	})
}

var _ patch.FS = (*memory)(nil)
