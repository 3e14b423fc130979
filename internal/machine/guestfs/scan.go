package guestfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// MaxTree bounds the bytes of one copied tree or archive.
	MaxTree = 64 << 30
	// defaultListed is how many entries are returned by default.
	defaultListed = 10_000
	// defaultScanTime is how long a scan may take by default.
	defaultScanTime = 10 * time.Second
)

func (l *ScanLimits) time() time.Duration {
	return wire.Within(l.Time, defaultScanTime, wire.MaxFileTime*time.Millisecond)
}

// timeout is how long the guest may take.
func (l *ScanLimits) timeout() time.Duration { return l.time() + machine.CallTimeout }

// scan is the limits as they travel.
func (l *ScanLimits) scan() *wire.FileScan {
	return &wire.FileScan{
		MaxEntries: wire.Within(l.Entries, wire.MaxScanned, wire.MaxScanned),
		MaxDepth:   wire.Within(l.Depth, wire.MaxDepth, wire.MaxDepth),
		MaxBytes:   wire.Within(l.Bytes, MaxTree, MaxTree),
		TimeMs:     wire.Milliseconds(l.time()),
	}
}

// List returns the names in a directory, sorted by their bytes.
func (f *Files) List(ctx context.Context, path string, options *ListOptions) (*Listing, error) {
	if options == nil {
		options = &ListOptions{}
	}
	limit := wire.Within(options.Max, defaultListed, wire.MaxEntries)
	s := &scan{op: wire.OpFileList, file: wire.File{Scan: (&ScanLimits{}).scan()}, max: limit}
	s.file.Scan.MaxEntries, s.file.Scan.After = limit, wire.Text(options.After)
	listing := &Listing{}
	err := retryOnce(ctx, func() error {
		*listing = Listing{}
		last := options.After
		end, err := f.scanEntries(ctx, path, s, func(e *FileEntry) error {
			if strings.Contains(e.Path, "/") || e.Path <= last {
				return fmt.Errorf("%w: %q in a list of names", wire.ErrProtocol, e.Path)
			}
			last = e.Path
			listing.Entries = append(listing.Entries, *e)
			return nil
		})
		if err == nil {
			listing.More = end.Cut != ""
		}
		return err
	})
	if err != nil {
		return nil, operation("list", path, err)
	}
	return listing, nil
}

// Walk visits everything beneath a directory, each directory before what is in
// it and in order of names. The directory itself is not visited. An error of
// visit ends the walk and is returned, but for fs.SkipAll.
func (f *Files) Walk(ctx context.Context, path string, options *WalkOptions, visit func(*FileEntry) error) (*WalkResult, error) {
	if options == nil {
		options = &WalkOptions{}
	}
	s := &scan{op: wire.OpFileWalk, max: wire.Within(options.Max, defaultListed, wire.MaxEntries), timeout: options.Limits.timeout()}
	s.file.Scan = options.Limits.scan()
	s.file.Scan.MaxEntries, s.file.Scan.Exclude = s.max, wire.Texts(options.Exclude)
	end, err := f.scanEntries(ctx, path, s, visit)
	if errors.Is(err, fs.SkipAll) {
		return &WalkResult{}, nil
	}
	if err != nil {
		return nil, operation("walk", path, err)
	}
	totals, err := totalsOf(end)
	if err != nil {
		return nil, operation("walk", path, f.machine.BrokenIf(err))
	}
	return &WalkResult{totals, cutOf(end)}, nil
}

// scan is an operation that answers with many things.
type scan struct {
	op      wire.Op
	file    wire.File // but for its path
	kind    wire.FrameType
	max     int // how many entries or matches the guest may send
	timeout time.Duration
}

// runScan reads frames until the end, each with take, which returns how many things
// were in it.
func (f *Files) runScan(ctx context.Context, path string, s *scan, take func(wire.Frame) (int, error)) (*wire.FileEnd, error) {
	file := s.file
	var err error
	if file.RootedPath, err = f.resolve(path); err != nil {
		return nil, err
	}
	op, err := f.machine.OpenOp(ctx, &machine.OpRequest{Request: &wire.Request{Op: s.op, File: &file}, Timeout: s.timeout})
	if err != nil {
		return nil, err
	}
	defer op.Close()
	for left := s.max; ; {
		frame, err := op.Next()
		switch {
		case err != nil:
			return nil, err
		case frame.Type == wire.FrameResult:
			var end wire.FileEnd
			return &end, op.Decode(frame, &end)
		case frame.Type != s.kind:
			return nil, op.UnexpectedFrame(frame)
		}
		n, err := take(frame)
		if left -= n; left < 0 || n == 0 && err == nil {
			return nil, op.Violation("more, or less, than was asked for")
		}
		if errors.Is(err, wire.ErrProtocol) {
			return nil, op.Broken(err)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (f *Files) scanEntries(ctx context.Context, path string, s *scan, visit func(*FileEntry) error) (*wire.FileEnd, error) {
	s.kind = wire.FrameEntries
	return f.runScan(ctx, path, s, func(frame wire.Frame) (int, error) {
		var entries []wire.FileEntry
		if err := frame.Decode(&entries); err != nil {
			return 0, err
		}
		for i := range entries {
			entry, err := entryOf(&entries[i])
			if err == nil {
				err = visit(entry)
			}
			if err != nil {
				return i, err
			}
		}
		return len(entries), nil
	})
}

// entryOf converts an entry. An impossible one is an ErrProtocol.
func entryOf(e *wire.FileEntry) (*FileEntry, error) {
	if err := checkBelow(string(e.Path)); err != nil {
		return nil, err
	}
	if !e.Kind.Known() || e.Size < 0 {
		return nil, fmt.Errorf("%w: file of kind %.20q and %d bytes", wire.ErrProtocol, e.Kind, e.Size)
	}
	return &FileEntry{
		Path: string(e.Path), Kind: e.Kind, Size: e.Size, Mode: fs.FileMode(e.Mode) & fs.ModePerm,
		ModTime: time.Unix(0, e.MtimeNs), Mount: e.Mount,
	}, nil
}

// checkBelow refuses a path that a guest cannot honestly have found below a
// directory.
func checkBelow(path string) error {
	bad := path == "" || len(path) > wire.MaxPath+wire.MaxName || strings.IndexByte(path, 0) >= 0
	for element := range strings.SplitSeq(path, "/") {
		bad = bad || element == "" || element == "." || element == ".." || len(element) > wire.MaxName
	}
	if bad {
		return fmt.Errorf("%w: %.100q is not below a directory", wire.ErrProtocol, path)
	}
	return nil
}

// totalsOf converts a summary. An impossible one is an ErrProtocol.
func totalsOf(end *wire.FileEnd) (Totals, error) {
	for _, n := range []int64{int64(end.Files), int64(end.Dirs), end.Bytes, int64(end.Refused), int64(end.Binary), int64(end.Large)} {
		if n < 0 {
			return Totals{}, fmt.Errorf("%w: a sum of %d", wire.ErrProtocol, n)
		}
	}
	totals := Totals{Files: end.Files, Dirs: end.Dirs, Bytes: end.Bytes, Refused: end.Refused}
	if len(end.Names) > wire.MaxRefused {
		return Totals{}, fmt.Errorf("%w: %d refused names", wire.ErrProtocol, len(end.Names))
	}
	for _, r := range end.Names {
		if err := checkBelow(string(r.Path)); err != nil && r.Path != "." {
			return Totals{}, err
		}
		totals.RefusedNames = append(totals.RefusedNames, Refused{string(r.Path), machine.GuestError(&wire.Error{Code: r.Code})})
	}
	return totals, nil
}

// cutOf is the limit that ended an operation early.
func cutOf(end *wire.FileEnd) error {
	switch end.Cut {
	case "":
		return nil
	case wire.CodeTimeout:
		return machine.ErrTimeout
	}
	return machine.ErrTooLarge
}
