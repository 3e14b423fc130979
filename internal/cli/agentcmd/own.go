package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// What of a person's own settings enters: instructions, skills and commands. Larger
// files, and what is beyond these numbers, stay out, and are counted.
const (
	maxOwnFile  = 1 << 20
	maxOwnBytes = 16 << 20
	maxOwnFiles = 2_000
)

// ownFiles collects files of the person's home.
type ownFiles struct {
	files map[string][]byte // by the path below the home inside
	bytes int64
	left  int
}

// writeOwn writes the person's own settings that the preset names to the home inside.
// What is not named stays out: hooks, variables, programs that print keys, logins.
func (s *start) writeOwn(ctx context.Context, to *guestfs.Files) error {
	own := ownFiles{files: map[string][]byte{}}
	for _, c := range s.preset.Own {
		if err := own.add(filepath.Join(s.app.Paths.Home, c.From), c.To); err != nil {
			return err
		}
	}
	for name, content := range own.files {
		if _, err := to.Write(ctx, path.Join(provide.DirectoryHome, name), content, &guestfs.WriteOptions{Mode: settingsMode, MkdirAll: true}); err != nil {
			return err
		}
	}
	if own.left > 0 && s.app.FirstTime(ctx, fmt.Sprint("own:", s.dir.ID, s.preset.ID, own.left)) {
		s.note(fmt.Sprintf("%d files of your own settings do not enter: they are hidden, too large, or no plain files", own.left))
	}
	return nil
}

// add collects a file or a directory, which may be a link itself.
func (o *ownFiles) add(from, to string) error {
	file, err := filepath.EvalSymlinks(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return filepath.WalkDir(file, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(file, at)
		if err != nil {
			return err
		}
		return o.visit(at, path.Join(to, filepath.ToSlash(rel)), rel != "." && strings.HasPrefix(entry.Name(), "."), entry)
	})
}

// visit takes a file, unless it is hidden, such as .env and .git, or beyond the limits.
func (o *ownFiles) visit(at, to string, hidden bool, entry fs.DirEntry) error {
	switch {
	case entry.IsDir() && (hidden || entry.Name() == "node_modules"):
		o.left++
		return fs.SkipDir
	case entry.IsDir():
		return nil
	case hidden || !entry.Type().IsRegular() || len(o.files) == maxOwnFiles:
		o.left++
		return nil
	}
	content, err := readAtMost(at, maxOwnFile)
	if err != nil || o.bytes+int64(len(content)) > maxOwnBytes {
		o.left++
		return nil //nolint:nilerr // it is counted
	}
	o.files[to], o.bytes = content, o.bytes+int64(len(content))
	return nil
}

// readAtMost reads a file that has no more than most bytes.
func readAtMost(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s has more than %d bytes", file, most)
	}
	return content, err
}
