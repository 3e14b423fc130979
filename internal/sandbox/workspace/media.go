package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
)

const (
	// MaxMediaBytes is the size of the largest file that is staged.
	MaxMediaBytes = 50 << 20
	// MaxMediaFiles is how many files one turn may bring.
	MaxMediaFiles = 100
	// maxNameTries is how many files of one turn may have the same name.
	maxNameTries = MaxMediaFiles + 1

	mediaName     = "media"
	inboundName   = "inbound"
	turnDirPrefix = "turn-"
)

// Media is what came in with one turn of a conversation.
type Media struct {
	// Roots are the directories that media may come from, absolute. A source
	// outside all of them is refused.
	Roots   []string
	Sources []Source
}

// Source is one file to bring into the sandbox.
type Source struct {
	Path string // absolute, below one of the roots
	Name string // the name the sender gave it; "" for that of Path
}

// Staged is a file that the sandbox can read now.
type Staged struct {
	Source string `json:"source"`
	Path   string `json:"path"` // below /workspace: media/inbound/<turn>/<name>
	Size   int64  `json:"size"`
}

// StageMedia copies media into a fresh directory of what is mounted at
// /workspace. A source that cannot be staged is a warning; an error means that
// the workspace could not be written to.
func StageMedia(ctx context.Context, l Layout, media Media) ([]Staged, []Warning, error) {
	s := stager{ctx: ctx, layout: l, names: map[string]bool{}}
	defer s.close()
	for _, root := range media.Roots {
		s.openRoot(root)
	}
	for i, source := range media.Sources {
		if i == MaxMediaFiles {
			s.warnings.addf(source.Path, "not staged, nor what follows: more than %d files", MaxMediaFiles)
			break
		}
		if err := s.stage(source); err != nil {
			return s.staged, s.warnings, err
		}
	}
	return s.staged, s.warnings, nil
}

// stager stages the media of one turn.
type stager struct {
	ctx      context.Context
	layout   Layout
	roots    []mediaRoot
	turn     *os.File // made with the first file
	rel      string   // of turn below the workspace
	owner    *hostpath.Owner
	names    map[string]bool // taken, in lower case
	staged   []Staged
	warnings Warnings
}

// mediaRoot is an open root and the two names it goes by.
type mediaRoot struct {
	dir             *os.File
	path, canonical string
}

func (s *stager) close() {
	closeAll(s.turn)
	for _, r := range s.roots {
		closeAll(r.dir)
	}
}

func (s *stager) openRoot(path string) {
	facts, err := hostpath.Identify(path)
	if err == nil {
		var dir *os.File
		if dir, err = hostpath.OpenDir(facts.Canonical); err == nil {
			s.roots = append(s.roots, mediaRoot{dir, filepath.Clean(path), facts.Canonical})
		}
	}
	if ignoreMissing(err) != nil {
		s.warnings.addf(path, "cannot be used as a media directory: %v", reason(err))
	}
}

func (s *stager) stage(source Source) error {
	if err := s.ctx.Err(); err != nil {
		return fmt.Errorf("stage media: %w", err)
	}
	file, err := s.open(source.Path)
	if err != nil {
		s.warnings.addf(source.Path, "not staged: %v", err)
		return nil
	}
	defer closeAll(file)
	if err := s.openTurn(); err != nil {
		return s.fail(err)
	}
	name := source.Name
	if name == "" {
		name = filepath.Base(source.Path)
	}
	return s.write(source, file, mediaFileName(name))
}

// open opens a source below the root it lies in.
func (s *stager) open(source string) (*os.File, error) {
	if !filepath.IsAbs(source) {
		return nil, errors.New("not an absolute path")
	}
	for _, root := range s.roots {
		for _, base := range []string{root.path, root.canonical} {
			rel, err := filepath.Rel(base, source)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			file, err := hostpath.OpenRegularBeneath(root.dir, rel, MaxMediaBytes)
			if errors.Is(err, hostpath.ErrTooLarge) {
				return nil, errMediaSize
			}
			if err != nil {
				return nil, reason(err)
			}
			return file, nil
		}
	}
	return nil, errors.New("lies in none of the directories that media may come from")
}

var errMediaSize = fmt.Errorf("larger than %d MiB", MaxMediaBytes>>20)

// write copies the file under its name, or one like it that is free.
func (s *stager) write(source Source, file *os.File, name string) error {
	for try := range maxNameTries {
		candidate := numbered(name, try)
		if s.names[strings.ToLower(candidate)] {
			continue
		}
		n, err := hostpath.WriteBeneath(s.turn, candidate, file,
			hostpath.WriteOptions{Mode: sharedFileMode, Owner: s.owner, Max: MaxMediaBytes})
		switch {
		case errors.Is(err, fs.ErrExist): // to this file system the names are one
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return s.fail(err)
			}
			continue
		case errors.Is(err, hostpath.ErrTooLarge): // it grew meanwhile
			s.warnings.addf(source.Path, "not staged: %v", errMediaSize)
			return nil
		case err != nil:
			return s.fail(err)
		}
		s.names[strings.ToLower(candidate)] = true
		s.staged = append(s.staged, Staged{Source: source.Path, Path: path.Join(s.rel, candidate), Size: n})
		return nil
	}
	return s.fail(fs.ErrExist)
}

// openTurn makes the turn's directory. Neither it nor what leads to it may be a
// link: the agent could have planted one.
func (s *stager) openTurn() error {
	if s.turn != nil {
		return nil
	}
	at, err := openWorkspace(s.layout)
	if err != nil {
		return err
	}
	if s.owner, err = ownerOf(at); err != nil {
		closeAll(at)
		return err
	}
	turn := turnDirPrefix + strings.ToLower(rand.Text())
	for _, name := range []string{mediaName, inboundName, turn} {
		next, _, err := makeDir(at, name, newDir{owner: s.owner, mode: sharedDirMode})
		closeAll(at)
		if err != nil {
			return err
		}
		at = next
	}
	s.turn, s.rel = at, path.Join(mediaName, inboundName, turn)
	return nil
}

// openWorkspace opens what is mounted at /workspace. An overlay is written to from
// inside its sandbox only.
func openWorkspace(l Layout) (*os.File, error) {
	switch {
	case l.Access == config.AccessOverlay:
		return nil, errors.New("changes of an overlay are made inside only")
	case !l.HasCopy():
		return openAgentDir(l)
	}
	v, err := openRootForReading(l)
	if err != nil {
		return nil, err
	}
	defer v.close()
	return v.openCopy()
}

func (s *stager) fail(err error) error {
	err = fmt.Errorf("stage media in %s: %w", s.layout.WorkspaceDir, err)
	if errors.Is(err, hostpath.ErrSymlink) || errors.Is(err, hostpath.ErrNotDirectory) {
		return errhint.With(err, "Remove media/inbound from the workspace; Atoll makes the directory itself.")
	}
	return withHint(err, s.layout.WorkspaceDir)
}
