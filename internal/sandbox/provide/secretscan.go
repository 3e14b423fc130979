package provide

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/contentpolicy/leaks"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// The bounds of what is scanned for secrets when an overlay is made. Files beyond
// them are visible, and a warning counts them.
const (
	maxScannedFiles = 5_000
	maxScannedBytes = 16 << 20
)

// secretScan looks for secrets in files of a base. The scanner is started when the
// first file is added.
type secretScan struct {
	ctx     context.Context
	start   func(context.Context) (*leaks.Scanner, error)
	scanner *leaks.Scanner
	paths   []string // that the scanner has
	found   []string
	files   int
	bytes   int64
	skipped int // over a bound
	err     error
}

func newSecretScan(ctx context.Context) *secretScan {
	return &secretScan{ctx: ctx, start: func(ctx context.Context) (*leaks.Scanner, error) { return leaks.Start(ctx) }}
}

// add scans a file. One that cannot be read as it should counts as found.
func (s *secretScan) add(c overlay.Candidate) {
	if s.err != nil {
		return
	}
	if s.files == maxScannedFiles || s.bytes+c.Size > maxScannedBytes {
		s.skipped++
		return
	}
	text, err := readCandidate(c, maxSecret)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return // it is not readable inside either
	case err != nil:
		s.found = append(s.found, c.Path)
		return
	}
	s.files++
	s.bytes += int64(len(text))
	s.err = s.scan(c.Path, text)
}

// scan gives a text to the scanner, and to a new one after as many as one reports.
func (s *secretScan) scan(path string, text []byte) (err error) {
	if s.scanner == nil {
		if s.scanner, err = s.start(s.ctx); err != nil {
			return err
		}
	}
	s.paths = append(s.paths, path)
	if err := s.scanner.Scan(text); err != nil || len(s.paths) < leaks.MaxFound {
		return err
	}
	return s.collect()
}

// collect waits for the scanner and notes what it found.
func (s *secretScan) collect() error {
	if s.scanner == nil {
		return nil
	}
	found, err := s.scanner.Finish()
	for _, text := range found {
		s.found = append(s.found, s.paths[text.Text])
	}
	s.scanner, s.paths = nil, nil
	return err
}

// finish returns the paths of the files with secrets.
func (s *secretScan) finish() ([]string, error) {
	if err := errors.Join(s.err, s.collect()); err != nil {
		return nil, fmt.Errorf("look for secrets: %w", err)
	}
	return s.found, nil
}

// stop ends a scanner that was not waited for.
func (s *secretScan) stop() {
	if s.scanner != nil {
		s.scanner.Stop()
	}
}

// warn tells how many files of a base were not scanned.
func (s *secretScan) warn(log *slog.Logger, base string) {
	if s.skipped > 0 && log != nil {
		log.Warn("there are more files than are looked at for secrets; the rest is visible to the agent", "directory", base, "looked at", s.files, "not looked at", s.skipped)
	}
}

// isScanned reports whether a file that git does not track is scanned: not what git
// keeps for itself, and not packages that others published.
func isScanned(c overlay.Candidate) bool {
	if c.Size == 0 || c.Size > maxSecret {
		return false
	}
	packages := []string{".git", "node_modules", "bower_components", ".venv", "venv", "site-packages", "__pycache__"}
	for element := range strings.SplitSeq(c.Path, "/") {
		if slices.Contains(packages, element) {
			return false
		}
	}
	return true
}
