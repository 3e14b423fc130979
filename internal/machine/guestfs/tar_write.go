package guestfs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// WriteTar unpacks an archive into a directory. Regular files and directories
// are made, and symbolic links if they are asked for, each file whole at once;
// files that exist are replaced, directories kept. Whatever was unpacked before an error stays.
func (f *Files) WriteTar(ctx context.Context, path string, archive io.Reader, options *TarOptions) (Totals, error) {
	if options == nil {
		options = &TarOptions{}
	}
	totals, err := f.writeTar(ctx, path, archive, options)
	return totals, operation("write tree", path, err)
}

func (f *Files) writeTar(ctx context.Context, path string, archive io.Reader, options *TarOptions) (Totals, error) {
	place, err := f.resolve(path)
	if err != nil {
		return Totals{}, err
	}
	if place.ReadOnly {
		return Totals{}, machine.ErrReadOnly
	}
	p := &push{archive: tar.NewReader(archive), skip: options.SkipRefused, left: *options.scan()}
	request := &wire.Request{Op: wire.OpFilePush, File: &wire.File{
		RootedPath: place, Scan: options.scan(), Change: &wire.FileChange{MkdirAll: options.MkdirAll},
	}}
	op, err := f.machine.OpenOp(ctx, &machine.OpRequest{Direct: true, Request: request})
	if err != nil {
		return Totals{}, err
	}
	defer op.Close()
	p.op = op
	var end wire.FileEnd
	if err := op.SendContent(p.send, &end); err != nil {
		return Totals{}, err
	}
	totals, err := totalsOf(&end)
	if err != nil {
		return totals, op.Broken(err)
	}
	op.Complete = true
	totals.Refused += p.refused
	totals.RefusedNames = append(p.names, totals.RefusedNames...)
	return totals, nil
}

// push is a tree that goes to the guest.
type push struct {
	op      *machine.StreamOp
	archive *tar.Reader
	skip    bool
	left    wire.FileScan // what may still be sent
	refused int
	names   []Refused
}

func (p *push) send(data *wire.DataWriter) error {
	for {
		header, err := p.archive.Next()
		if errors.Is(err, io.EOF) {
			return data.End()
		}
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		if p.left.MaxEntries--; p.left.MaxEntries < 0 {
			return fmt.Errorf("archive: %w: more than %d entries", machine.ErrTooLarge, wire.MaxScanned)
		}
		node, err := nodeOf(header, p.left.Links)
		switch {
		case err != nil && p.skip:
			p.note(header.Name, err)
			continue
		case err != nil:
			return operation("archive entry", header.Name, err)
		case node == nil:
			continue
		}
		if p.left.MaxBytes -= node.Size; p.left.MaxBytes < 0 {
			return operation("archive entry", header.Name, machine.ErrTooLarge)
		}
		if err := p.sendNode(node, data); err != nil {
			return err
		}
	}
}

func (p *push) sendNode(node *wire.FileNode, data *wire.DataWriter) error {
	if err := wire.WriteJSON(p.op, wire.FrameNode, node); err != nil {
		return err
	}
	if node.Kind != KindFile {
		return nil
	}
	return copyData(data, p.archive)
}

func (p *push) note(name string, err error) {
	if p.refused++; len(p.names) < wire.MaxRefused {
		p.names = append(p.names, Refused{name, err})
	}
}

// tarRefusals are the entries that are not unpacked.
var tarRefusals = map[byte]error{
	tar.TypeSymlink: machine.ErrSymlink, tar.TypeLink: machine.ErrHardLink, tar.TypeFifo: machine.ErrFIFO,
	tar.TypeChar: machine.ErrDevice, tar.TypeBlock: machine.ErrDevice,
}

// nodeOf is the node that a header stands for, or nil if it stands for nothing. With links
// it may be a symbolic one.
func nodeOf(h *tar.Header, links bool) (*wire.FileNode, error) {
	isLink := links && h.Typeflag == tar.TypeSymlink
	if err := tarRefusals[h.Typeflag]; err != nil && !isLink {
		return nil, err
	}
	node := &wire.FileNode{Kind: KindFile, Mode: uint32(h.FileInfo().Mode().Perm()), MtimeNs: h.ModTime.UnixNano(), Size: h.Size}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
	case tar.TypeDir:
		node.Kind, node.Size = KindDir, 0
	case tar.TypeSymlink:
		node.Kind, node.Size, node.Target = KindSymlink, 0, wire.Text(h.Linkname)
		if !wire.ValidTarget(node.Target) {
			return nil, machine.ErrSymlink
		}
	case tar.TypeXGlobalHeader:
		return nil, nil //nolint:nilnil // nothing, and nothing wrong
	default:
		return nil, fmt.Errorf("%w: entry of type %q", machine.ErrUnsupported, h.Typeflag)
	}
	name, err := tarName(h.Name)
	if err != nil || name == "." && node.Kind == KindDir {
		return nil, err
	}
	node.Path = wire.Text(name)
	return node, nil
}

// tarName is the path of an entry below where the archive is unpacked.
func tarName(name string) (string, error) {
	if path.IsAbs(name) {
		return "", machine.ErrOutside
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == ".." {
			return "", machine.ErrOutside
		}
	}
	clean := path.Clean(name)
	if clean == "." {
		return clean, nil
	}
	if err := checkBelow(clean); err != nil {
		return "", fmt.Errorf("%w: %w", machine.ErrInvalid, fs.ErrInvalid)
	}
	return clean, nil
}
