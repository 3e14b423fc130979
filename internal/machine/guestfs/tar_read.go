package guestfs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// ReadTar writes a file, or a directory with all that is in it, to w as an
// archive. Names begin with the last element of path. It holds regular files
// and directories, and symbolic links if they are asked for.
func (f *Files) ReadTar(ctx context.Context, path string, w io.Writer, options *TarOptions) (Totals, error) {
	if options == nil {
		options = &TarOptions{}
	}
	totals, err := f.readTar(ctx, path, w, options)
	return totals, operation("read tree", path, err)
}

func (f *Files) readTar(ctx context.Context, path string, w io.Writer, options *TarOptions) (Totals, error) {
	place, err := f.resolve(path)
	if err != nil {
		return Totals{}, err
	}
	request := &wire.Request{Op: wire.OpFilePull, File: &wire.File{RootedPath: place, Scan: options.scan()}}
	op, err := f.machine.OpenOp(ctx, &machine.OpRequest{Direct: true, Request: request})
	if err != nil {
		return Totals{}, err
	}
	defer op.Close()
	op.SentAll = true
	archive := tar.NewWriter(w)
	p := &pull{op: op, archive: archive, top: top(path), left: *request.File.Scan}
	end, err := p.run()
	if err != nil {
		return Totals{}, err
	}
	return end, archive.Close()
}

func (o *TarOptions) scan() *wire.FileScan {
	scan := o.Limits.scan()
	scan.TimeMs, scan.SkipRefused, scan.Links, scan.Exclude = 0, o.SkipRefused, o.Links, wire.Texts(o.Exclude)
	return scan
}

// top is the name that an archive's names begin with.
func top(name string) string {
	if base := path.Base(path.Clean(name)); base != "/" {
		return base
	}
	return "root"
}

// pull is a tree that comes from the guest.
type pull struct {
	op      *machine.StreamOp
	archive *tar.Writer
	top     string
	order   treeOrder
	left    wire.FileScan // what it may still bring
}

func (p *pull) run() (Totals, error) {
	for {
		frame, err := p.op.Next()
		switch {
		case err != nil:
			return Totals{}, err
		case frame.Type == wire.FrameResult:
			return p.end(frame)
		case frame.Type != wire.FrameNode:
			return Totals{}, p.op.UnexpectedFrame(frame)
		}
		var node wire.FileNode
		if err := p.op.Decode(frame, &node); err != nil {
			return Totals{}, err
		}
		if err := p.check(&node); err != nil {
			return Totals{}, p.op.Broken(err)
		}
		if err := p.take(&node); err != nil {
			return Totals{}, err
		}
	}
}

func (p *pull) end(frame wire.Frame) (Totals, error) {
	var end wire.FileEnd
	if err := p.op.Decode(frame, &end); err != nil {
		return Totals{}, err
	}
	totals, err := totalsOf(&end)
	if err != nil {
		return totals, p.op.Broken(err)
	}
	p.op.Complete = true
	if end.Cut != "" {
		return totals, cutOf(&end)
	}
	return totals, nil
}

// check refuses a node that is impossible or over the limits.
func (p *pull) check(node *wire.FileNode) error {
	if err := p.order.next(string(node.Path), node.Kind == KindDir); err != nil {
		return err
	}
	p.left.MaxEntries--
	p.left.MaxBytes -= node.Size
	switch {
	case p.left.MaxEntries < 0 || p.left.MaxBytes < 0:
		return fmt.Errorf("%w: a tree over its limits", wire.ErrProtocol)
	case node.Kind == KindSymlink && p.left.Links:
		return checkLink(node)
	case node.Kind != KindDir && node.Kind != KindFile, node.Kind == KindDir && node.Size != 0, node.Size < 0:
		return fmt.Errorf("%w: a %.20q of %d bytes in a tree", wire.ErrProtocol, node.Kind, node.Size)
	}
	return nil
}

// checkLink refuses a symbolic link without a target, or with more than one.
func checkLink(node *wire.FileNode) error {
	if node.Size != 0 || !wire.ValidTarget(node.Target) {
		return fmt.Errorf("%w: a link of %d bytes to %.100q", wire.ErrProtocol, node.Size, node.Target)
	}
	return nil
}

// take writes a node to the archive.
func (p *pull) take(node *wire.FileNode) error {
	header := &tar.Header{
		Name: path.Join(p.top, string(node.Path)), Mode: int64(node.Mode & 0o777), Size: node.Size,
		ModTime: time.Unix(0, node.MtimeNs), Typeflag: tar.TypeReg,
	}
	switch node.Kind {
	case KindDir:
		header.Name, header.Typeflag = header.Name+"/", tar.TypeDir
		return p.archive.WriteHeader(header)
	case KindSymlink:
		header.Linkname, header.Typeflag = string(node.Target), tar.TypeSymlink
		return p.archive.WriteHeader(header)
	}
	if err := p.archive.WriteHeader(header); err != nil {
		return err
	}
	buf := transferBuffers.Get().(*transferBuffer)
	defer transferBuffers.Put(buf)
	data, left := p.op.Frames.Data(), node.Size
	for {
		n := 0
		err := p.op.ReadWithin(func() (err error) { n, err = data.Read(buf[:]); return err })
		if left -= int64(n); left < 0 {
			return p.op.Violation("more bytes of a file than it has")
		}
		if _, err := p.archive.Write(buf[:n]); err != nil {
			return err
		}
		switch {
		case errors.Is(err, io.EOF) && left > 0:
			return operation("read", string(node.Path), machine.ErrChanged)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return p.op.ErrorFor(err)
		}
	}
}
