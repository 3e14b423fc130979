package guestfs

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// fileCall is an operation on a file with a single answer.
type fileCall struct {
	op      wire.Op
	file    wire.File // but for its path
	to      string    // rename, copy: where to
	writes  bool      // it needs a root that is not read-only
	noRetry bool      // it must not be sent twice
	timeout time.Duration
}

// call performs an operation on path.
func (f *Files) call(ctx context.Context, path string, q *fileCall, v any) error {
	file := q.file
	var err error
	if file.RootedPath, err = f.resolve(path); err != nil {
		return err
	}
	target := file.RootedPath
	if q.to != "" {
		if target, err = f.resolve(q.to); err != nil {
			return operation("to", q.to, err)
		}
		file.To = &target
	}
	if q.writes && target.ReadOnly {
		return machine.ErrReadOnly
	}
	return f.machine.Call(ctx, &machine.UnaryCall{
		Request: &wire.Request{Op: q.op, File: &file}, Timeout: q.timeout, NoRetry: q.noRetry,
	}, v)
}

// Mkdir makes a directory.
func (f *Files) Mkdir(ctx context.Context, path string, options *MkdirOptions) error {
	if options == nil {
		options = &MkdirOptions{}
	}
	if err := checkMode(options.Mode); err != nil {
		return operation("mkdir", path, err)
	}
	q := &fileCall{op: wire.OpFileMkdir, writes: true, noRetry: !options.Parents}
	q.file.Change = &wire.FileChange{Mode: uint32(options.Mode), MkdirAll: options.Parents}
	return operation("mkdir", path, f.call(ctx, path, q, &struct{}{}))
}

// Remove removes a file or a directory, and returns how much.
func (f *Files) Remove(ctx context.Context, path string, options *RemoveOptions) (Totals, error) {
	if options == nil {
		options = &RemoveOptions{}
	}
	limits := ScanLimits{}
	q := &fileCall{op: wire.OpFileRemove, writes: true, noRetry: !options.Missing, timeout: limits.timeout()}
	q.file.Change = &wire.FileChange{Recursive: options.Recursive, Missing: options.Missing, IfVersion: string(options.IfVersion)}
	q.file.Scan = limits.scan()
	return f.totals(ctx, "remove", path, q)
}

// Rename moves a file or a directory within one file system.
func (f *Files) Rename(ctx context.Context, from, to string, options *RenameOptions) error {
	if options == nil {
		options = &RenameOptions{}
	}
	place, err := f.resolve(from)
	if err == nil && place.ReadOnly {
		err = machine.ErrReadOnly
	}
	if err != nil {
		return operation("rename", from, err)
	}
	q := &fileCall{op: wire.OpFileRename, to: to, writes: true, noRetry: true}
	q.file.Change = &wire.FileChange{NoReplace: options.NoReplace, MkdirAll: options.MkdirAll, IfVersion: string(options.IfVersion)}
	return operation("rename", from, f.call(ctx, from, q, &struct{}{}))
}

// Copy copies a file, or a directory with all that is in it, inside the
// sandbox. Each file appears whole; files that exist are replaced.
func (f *Files) Copy(ctx context.Context, from, to string, options *CopyOptions) (Totals, error) {
	if options == nil {
		options = &CopyOptions{}
	}
	q := &fileCall{op: wire.OpFileCopy, to: to, writes: true, noRetry: options.NoReplace, timeout: options.Limits.timeout()}
	q.file.Change = &wire.FileChange{Recursive: options.Recursive, NoReplace: options.NoReplace, MkdirAll: options.MkdirAll}
	q.file.Scan = options.Limits.scan()
	return f.totals(ctx, "copy", from, q)
}

// totals performs an operation whose answer is a summary.
func (f *Files) totals(ctx context.Context, what, path string, q *fileCall) (Totals, error) {
	var end wire.FileEnd
	if err := f.call(ctx, path, q, &end); err != nil {
		return Totals{}, operation(what, path, err)
	}
	totals, err := totalsOf(&end)
	return totals, operation(what, path, f.machine.BrokenIf(err))
}
