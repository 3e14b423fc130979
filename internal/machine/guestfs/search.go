package guestfs

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// What a search returns by default.
const (
	defaultMatches      = 200
	defaultMatchLine    = 500
	defaultSearchedFile = 4 << 20
)

// Search finds lines in a file, or in all files beneath a directory.
func (f *Files) Search(ctx context.Context, path string, options *SearchOptions) (*SearchResult, error) {
	if err := options.check(); err != nil {
		return nil, operation("search", path, err)
	}
	s := &scan{
		op: wire.OpFileSearch, kind: wire.FrameMatches, timeout: options.Limits.timeout(),
		file: wire.File{Scan: options.Limits.scan(), Search: options.search()},
	}
	s.file.Scan.Include, s.file.Scan.Exclude = wire.Texts(options.Include), wire.Texts(options.Exclude)
	s.max = s.file.Search.MaxMatches
	var result *SearchResult
	err := retryOnce(ctx, func() (err error) { result, err = f.search(ctx, path, s); return err })
	return result, operation("search", path, err)
}

func (f *Files) search(ctx context.Context, path string, s *scan) (*SearchResult, error) {
	result := &SearchResult{}
	end, err := f.runScan(ctx, path, s, func(frame wire.Frame) (int, error) {
		var matches []wire.FileMatch
		if err := frame.Decode(&matches); err != nil {
			return 0, err
		}
		for i := range matches {
			match, err := matchOf(&matches[i], s.file.Search)
			if err != nil {
				return i, err
			}
			result.Matches = append(result.Matches, *match)
		}
		return len(matches), nil
	})
	if err != nil {
		return nil, err
	}
	if result.Totals, err = totalsOf(end); err != nil {
		return nil, f.machine.BrokenIf(err)
	}
	result.Binary, result.Large, result.Cut = end.Binary, end.Large, cutOf(end)
	return result, nil
}

// check refuses what the guest would refuse, with a better message.
func (o *SearchOptions) check() error {
	switch {
	case o == nil || o.Pattern == "":
		return fmt.Errorf("%w: there is nothing to search for", machine.ErrInvalid)
	case len(o.Pattern) > wire.MaxPattern:
		return fmt.Errorf("%w: the pattern is longer than %d bytes", machine.ErrInvalid, wire.MaxPattern)
	case len(o.Include)+len(o.Exclude) > wire.MaxGlobs:
		return fmt.Errorf("%w: more than %d globs", machine.ErrInvalid, wire.MaxGlobs)
	case o.Context < 0 || o.Context > wire.MaxContext:
		return fmt.Errorf("%w: %d lines of context are not between 0 and %d", machine.ErrInvalid, o.Context, wire.MaxContext)
	}
	if !o.Literal {
		if _, err := regexp.Compile(o.Pattern); err != nil {
			return fmt.Errorf("%w: %w", machine.ErrInvalid, err)
		}
	}
	return nil
}

func (o *SearchOptions) search() *wire.FileSearch {
	return &wire.FileSearch{
		Pattern: wire.Text(o.Pattern), Literal: o.Literal, IgnoreCase: o.IgnoreCase, Context: o.Context,
		MaxMatches:  wire.Within(o.MaxMatches, defaultMatches, wire.MaxMatches),
		MaxPerFile:  wire.Within(o.MaxPerFile, wire.MaxMatches, wire.MaxMatches),
		MaxLine:     wire.Within(o.MaxLine, defaultMatchLine, wire.MaxMatchLine),
		MaxFileSize: wire.Within(o.MaxFileSize, defaultSearchedFile, wire.MaxSearchedFile),
	}
}

// matchOf converts a match. An impossible one is an ErrProtocol.
func matchOf(m *wire.FileMatch, asked *wire.FileSearch) (*Match, error) {
	if err := checkBelow(string(m.Path)); err != nil && m.Path != "." {
		return nil, err
	}
	long := func(lines []wire.Text) bool {
		for _, line := range lines {
			if len(line) > asked.MaxLine || strings.Contains(string(line), "\n") {
				return true
			}
		}
		return false
	}
	if m.Line < 1 || m.Column < 1 || len(m.Before) > asked.Context || len(m.After) > asked.Context ||
		long(m.Before) || long(m.After) || long([]wire.Text{m.Text}) {
		return nil, fmt.Errorf("%w: impossible match in line %d", wire.ErrProtocol, m.Line)
	}
	return &Match{
		Path: string(m.Path), Line: m.Line, Column: m.Column, Text: string(m.Text), Cut: m.Cut,
		Before: wire.Strings(m.Before), After: wire.Strings(m.After),
	}, nil
}
