// Package hosttree copies files and directories between the host and a sandbox: what is
// packed on one side is unpacked on the other while it moves.
package hosttree

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/atoll-run/atoll/internal/hostpath/archive"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// Send copies files of the host into the directory dir of a sandbox, which is made if it
// is not there. What was left out is returned.
func Send(ctx context.Context, files *guestfs.Files, from archive.Source, dir string) (skipped []string, err error) {
	skipped, err = send(ctx, files, from, dir)
	if from.Links && errors.Is(err, machine.ErrUnsupported) { // a guest of an earlier version
		from.Links = false
		return send(ctx, files, from, dir)
	}
	return skipped, err
}

func send(ctx context.Context, files *guestfs.Files, from archive.Source, dir string) (skipped []string, err error) {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		var err error
		skipped, err = archive.Pack(ctx, from, w)
		_ = w.CloseWithError(err)
		packed <- err
	}()
	totals, written := files.WriteTar(ctx, dir, r, &guestfs.TarOptions{SkipRefused: true, MkdirAll: true, Links: from.Links})
	_ = r.CloseWithError(written)
	if err := <-packed; err != nil && !errors.Is(err, written) {
		return skipped, err
	}
	return append(skipped, Refused(totals)...), written
}

// Fetch copies a file or directory of a sandbox to the host. What was left out is
// returned.
func Fetch(ctx context.Context, files *guestfs.Files, inside string, to archive.Target) (skipped []string, err error) {
	skipped, err = fetch(ctx, files, inside, to)
	if to.Links && errors.Is(err, machine.ErrUnsupported) { // a guest of an earlier version
		to.Links = false
		return fetch(ctx, files, inside, to)
	}
	return skipped, err
}

func fetch(ctx context.Context, files *guestfs.Files, inside string, to archive.Target) ([]string, error) {
	r, w := io.Pipe()
	read := make(chan error, 1)
	var totals guestfs.Totals
	go func() {
		var err error
		totals, err = readTar(ctx, files, inside, w, to.Links)
		_ = w.CloseWithError(err)
		read <- err
	}()
	unpacked := archive.Unpack(ctx, r, to)
	if unpacked == nil {
		_, _ = io.Copy(io.Discard, r) // what follows the archive's end
	}
	_ = r.CloseWithError(unpacked)
	if err := <-read; err != nil && !errors.Is(err, unpacked) {
		return nil, err // why the archive ended is why it could not be unpacked
	}
	return Refused(totals), unpacked
}

// Read writes a file or directory of a sandbox to w as an archive without links. What was
// left out is returned.
func Read(ctx context.Context, files *guestfs.Files, inside string, w io.Writer) (skipped []string, err error) {
	totals, err := readTar(ctx, files, inside, w, false)
	return Refused(totals), err
}

// readTar leaves out what is below inside and cannot be copied; inside itself must be
// something that can.
func readTar(ctx context.Context, files *guestfs.Files, inside string, w io.Writer, links bool) (guestfs.Totals, error) {
	totals, err := files.ReadTar(ctx, inside, w, &guestfs.TarOptions{SkipRefused: true, Links: links})
	if err == nil && totals.Files+totals.Dirs == 0 && len(totals.RefusedNames) > 0 {
		err = fmt.Errorf("%s %w", inside, totals.RefusedNames[0].Err)
		totals = guestfs.Totals{}
	}
	return totals, err
}

// Refused names what a transfer left out, each with the reason.
func Refused(t guestfs.Totals) (names []string) {
	for _, r := range t.RefusedNames {
		names = append(names, fmt.Sprintf("%s %v", r.Path, r.Err))
	}
	if more := t.Refused - len(t.RefusedNames); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return names
}
