package dockercli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// recordStore stores the records of containers: one file a name, and a link from each
// id to its name. Records are replaced whole, so readers need no lock; a writer holds
// the container's lock.
type recordStore struct{ dir string }

var (
	validHost = lazyregexp.New(`^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?$`)
)

const (
	maxRecord    = 4 << 20 // bytes
	recordSuffix = ".json"
	idsDir       = "ids"
	outputSuffix = ".log"
)

// ReadRecord returns the record of a container by its name.
func ReadRecord(dir, name string) (*Container, error) { return (&recordStore{dir: dir}).load(name) }

func (s *recordStore) recordPath(name string) string { return filepath.Join(s.dir, name+recordSuffix) }

// outputPath is where the output of a main command is kept once it has ended.
func (s *recordStore) outputPath(name, stream string) string {
	return filepath.Join(s.dir, name+"."+stream+outputSuffix)
}

// find returns the container of a name, an id, or the beginning of an id.
func (s *recordStore) find(ref string) (*Container, error) {
	if isName(ref) && len(ref) <= maxName {
		if c, err := s.load(ref); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
	}
	name, err := s.nameOf(ref)
	if err != nil {
		return nil, err
	}
	c, err := s.load(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !strings.HasPrefix(c.ID, ref) {
		return nil, noSuchContainer(ref)
	}
	return c, err
}

// nameOf looks an id up.
func (s *recordStore) nameOf(ref string) (string, error) {
	if !isID(ref) {
		return "", noSuchContainer(ref)
	}
	if len(ref) < fullID {
		full, err := s.complete(ref)
		if err != nil {
			return "", err
		}
		ref = full
	}
	name, err := os.Readlink(filepath.Join(s.dir, idsDir, ref))
	if err != nil {
		return "", noSuchContainer(ref)
	}
	return name, nil
}

// complete finds the one id that begins like this.
func (s *recordStore) complete(prefix string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, idsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), prefix) })
	switch len(entries) {
	case 0:
		return "", noSuchContainer(prefix)
	case 1:
		return entries[0].Name(), nil
	}
	return "", fmt.Errorf("Multiple IDs found with provided prefix: %s", prefix) //nolint:staticcheck // docker's words
}

// parseRecord decodes a record.
func parseRecord(record []byte) (*Container, error) {
	text, err := withoutHeader(record)
	if err != nil {
		return nil, err
	}
	var c Container
	return &c, json.Unmarshal(text, &c)
}

// withoutHeader removes what earlier versions wrote before the JSON text: a line
// "entry/2 N" or "entry N" and N bytes.
func withoutHeader(record []byte) ([]byte, error) {
	if !bytes.HasPrefix(record, []byte("entry")) {
		return record, nil
	}
	line, rest, _ := bytes.Cut(record, []byte("\n"))
	_, digits, _ := strings.Cut(string(line), " ")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n > uint64(len(rest)) {
		return nil, errors.New("its header is malformed")
	}
	return rest[n:], nil
}

func (s *recordStore) load(name string) (*Container, error) {
	data, err := os.ReadFile(s.recordPath(name))
	if err != nil {
		return nil, err
	}
	if len(data) > maxRecord {
		return nil, fmt.Errorf("record of container %s is larger than %d bytes", name, maxRecord)
	}
	c, err := parseRecord(data)
	if err != nil {
		return nil, fmt.Errorf("record of container %s: %w", name, err)
	}
	return c, nil
}

// save replaces the record.
func (s *recordStore) save(c *Container) error {
	if err := os.MkdirAll(filepath.Join(s.dir, idsDir), 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	temporary := filepath.Join(s.dir, "."+c.ID)
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	if err := os.Rename(temporary, s.recordPath(c.Name)); err != nil {
		return err
	}
	err = os.Symlink(c.Name, filepath.Join(s.dir, idsDir, c.ID))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// drop removes a record and everything kept with it.
func (s *recordStore) drop(c *Container) error {
	var errs []error
	for _, path := range []string{
		filepath.Join(s.dir, idsDir, c.ID), s.outputPath(c.Name, "stdout"), s.outputPath(c.Name, "stderr"), s.recordPath(c.Name),
	} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// all returns every record, the newest first.
func (s *recordStore) all() ([]*Container, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []*Container
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), recordSuffix)
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		c, err := s.load(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		} else if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *Container) int { return b.Created.Compare(a.Created) })
	return list, nil
}

// noContainer is the error of an unknown name or id.
type noContainer struct{ ref string }

func (e *noContainer) Error() string { return "No such container: " + e.ref }

func noSuchContainer(ref string) error { return &noContainer{ref} }
