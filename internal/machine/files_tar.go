package machine

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// ReadTar writes a file, or a directory with all that is in it, to w as an
// archive. Names begin with the last element of path. It holds regular files
// and directories only.
func (f *Files) ReadTar(ctx context.Context, path string, w io.Writer, options *TarOptions) (Totals, error) {
	if options == nil {
		options = &TarOptions{}
	}
	totals, err := f.readTar(ctx, path, w, options)
	return totals, operation("read tree", path, err)
}

func (f *Files) readTar(ctx context.Context, path string, w io.Writer, options *TarOptions) (Totals, error) {
	place, err := f.place(path)
	if err != nil {
		return Totals{}, err
	}
	request := &wire.Request{Op: wire.OpFilePull, File: &wire.File{Place: place, Scan: options.scan()}}
	t, err := f.machine.talk(ctx, &opening{link: f.machine.bulk, direct: true, request: request})
	if err != nil {
		return Totals{}, err
	}
	defer t.hangUp()
	t.whole = true
	archive := tar.NewWriter(w)
	p := &pull{talk: t, archive: archive, top: top(path), left: *request.File.Scan}
	end, err := p.run()
	if err != nil {
		return Totals{}, err
	}
	return end, archive.Close()
}

func (o *TarOptions) scan() *wire.FileScan {
	scan := o.Limits.scan()
	scan.TimeMs, scan.SkipRefused, scan.Exclude = 0, o.SkipRefused, wire.Texts(o.Exclude)
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
	talk    *talk
	archive *tar.Writer
	top     string
	order   treeOrder
	left    wire.FileScan // what it may still bring
}

func (p *pull) run() (Totals, error) {
	for {
		frame, err := p.talk.next()
		switch {
		case err != nil:
			return Totals{}, err
		case frame.Type == wire.FrameResult:
			return p.end(frame)
		case frame.Type != wire.FrameNode:
			return Totals{}, p.talk.odd(frame)
		}
		var node wire.FileNode
		if err := p.talk.decode(frame, &node); err != nil {
			return Totals{}, err
		}
		if err := p.check(&node); err != nil {
			return Totals{}, p.talk.machine.cut(p.talk.live, err)
		}
		if err := p.take(&node); err != nil {
			return Totals{}, err
		}
	}
}

func (p *pull) end(frame wire.Frame) (Totals, error) {
	var end wire.FileEnd
	if err := p.talk.decode(frame, &end); err != nil {
		return Totals{}, err
	}
	totals, err := totalsOf(&end)
	if err != nil {
		return totals, p.talk.machine.cut(p.talk.live, err)
	}
	p.talk.settled = true
	if end.Cut != "" {
		return totals, cutOf(&end)
	}
	return totals, nil
}

// check believes of a node what is possible and within the limits.
func (p *pull) check(node *wire.FileNode) error {
	if err := p.order.next(string(node.Path), node.Kind == KindDir); err != nil {
		return err
	}
	p.left.MaxEntries--
	p.left.MaxBytes -= node.Size
	switch {
	case node.Kind != KindDir && node.Kind != KindFile, node.Kind == KindDir && node.Size != 0, node.Size < 0:
		return fmt.Errorf("%w: a %.20q of %d bytes in a tree", wire.ErrProtocol, node.Kind, node.Size)
	case p.left.MaxEntries < 0 || p.left.MaxBytes < 0:
		return fmt.Errorf("%w: a tree over its limits", wire.ErrProtocol)
	}
	return nil
}

// take writes a node to the archive.
func (p *pull) take(node *wire.FileNode) error {
	header := &tar.Header{
		Name: path.Join(p.top, string(node.Path)), Mode: int64(node.Mode & 0o777), Size: node.Size,
		ModTime: time.Unix(0, node.MtimeNs), Typeflag: tar.TypeReg,
	}
	if node.Kind == KindDir {
		header.Name, header.Typeflag = header.Name+"/", tar.TypeDir
		return p.archive.WriteHeader(header)
	}
	if err := p.archive.WriteHeader(header); err != nil {
		return err
	}
	buf := transferBuffers.Get().(*transferBuffer)
	defer transferBuffers.Put(buf)
	data, left := p.talk.frames.Data(), node.Size
	for {
		n := 0
		err := p.talk.listen(func() (err error) { n, err = data.Read(buf[:]); return err })
		if left -= int64(n); left < 0 {
			return p.talk.lies("more bytes of a file than it has")
		}
		if _, err := p.archive.Write(buf[:n]); err != nil {
			return err
		}
		switch {
		case errors.Is(err, io.EOF) && left > 0:
			return operation("read", string(node.Path), ErrChanged)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return p.talk.failed(err)
		}
	}
}

// treeOrder checks that a tree comes as a walk finds it: each directory before
// what is in it, names in order. So no name can come twice, or below a file.
type treeOrder struct {
	begun bool
	open  []openDir // from the top down to where the walk is
}

type openDir struct {
	path string // "" is the top
	last string // name that came last in it
}

func (o *treeOrder) next(name string, dir bool) error {
	if !o.begun && name == "." {
		o.begun = true
		if dir {
			o.open = []openDir{{}}
		}
		return nil
	}
	if err := checkBelow(name); err != nil {
		return err
	}
	parent, base := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		parent, base = name[:i], name[i+1:]
	}
	for len(o.open) > 0 && o.open[len(o.open)-1].path != parent {
		o.open = o.open[:len(o.open)-1]
	}
	if len(o.open) == 0 || base <= o.open[len(o.open)-1].last {
		return fmt.Errorf("%w: %.100q is out of order in a tree", wire.ErrProtocol, name)
	}
	o.open[len(o.open)-1].last = base
	if dir {
		o.open = append(o.open, openDir{path: name})
	}
	return nil
}

// WriteTar unpacks an archive into a directory. Regular files and directories
// are made, each file whole at once; files that exist are replaced, directories
// kept. Whatever was unpacked before an error stays.
func (f *Files) WriteTar(ctx context.Context, path string, archive io.Reader, options *TarOptions) (Totals, error) {
	if options == nil {
		options = &TarOptions{}
	}
	totals, err := f.writeTar(ctx, path, archive, options)
	return totals, operation("write tree", path, err)
}

func (f *Files) writeTar(ctx context.Context, path string, archive io.Reader, options *TarOptions) (Totals, error) {
	place, err := f.place(path)
	if err != nil {
		return Totals{}, err
	}
	if place.ReadOnly {
		return Totals{}, ErrReadOnly
	}
	p := &push{archive: tar.NewReader(archive), skip: options.SkipRefused, left: *options.scan()}
	request := &wire.Request{Op: wire.OpFilePush, File: &wire.File{
		Place: place, Scan: options.scan(), Change: &wire.FileChange{MkdirAll: options.MkdirAll},
	}}
	t, err := f.machine.talk(ctx, &opening{link: f.machine.bulk, direct: true, request: request})
	if err != nil {
		return Totals{}, err
	}
	defer t.hangUp()
	p.talk = t
	var end wire.FileEnd
	if err := t.deliver(p.send, &end); err != nil {
		return Totals{}, err
	}
	totals, err := totalsOf(&end)
	if err != nil {
		return totals, t.machine.cut(t.live, err)
	}
	t.settled = true
	totals.Refused += p.refused
	totals.RefusedNames = append(p.names, totals.RefusedNames...)
	return totals, nil
}

// push is a tree that goes to the guest.
type push struct {
	talk    *talk
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
			return fmt.Errorf("archive: %w: more than %d entries", ErrTooLarge, wire.MaxScanned)
		}
		node, err := nodeOf(header)
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
			return operation("archive entry", header.Name, ErrTooLarge)
		}
		if err := p.sendNode(node, data); err != nil {
			return err
		}
	}
}

func (p *push) sendNode(node *wire.FileNode, data *wire.DataWriter) error {
	if err := wire.WriteJSON(p.talk, wire.FrameNode, node); err != nil {
		return err
	}
	if node.Kind == KindDir {
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
	tar.TypeSymlink: ErrSymlink, tar.TypeLink: ErrHardLink, tar.TypeFifo: ErrFIFO,
	tar.TypeChar: ErrDevice, tar.TypeBlock: ErrDevice,
}

// nodeOf is the node that a header stands for, or nil if it stands for nothing.
func nodeOf(h *tar.Header) (*wire.FileNode, error) {
	if err := tarRefusals[h.Typeflag]; err != nil {
		return nil, err
	}
	node := &wire.FileNode{Kind: KindFile, Mode: uint32(h.FileInfo().Mode().Perm()), MtimeNs: h.ModTime.UnixNano(), Size: h.Size}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
	case tar.TypeDir:
		node.Kind, node.Size = KindDir, 0
	case tar.TypeXGlobalHeader:
		return nil, nil //nolint:nilnil // nothing, and nothing wrong
	default:
		return nil, fmt.Errorf("%w: entry of type %q", ErrUnsupported, h.Typeflag)
	}
	name, err := tarName(h.Name)
	if err != nil || name == "." && node.Kind == KindDir {
		return nil, err
	}
	node.Path = wire.Text(name)
	return node, nil
}

// tarName is the place of an entry below where the archive is unpacked.
func tarName(name string) (string, error) {
	if path.IsAbs(name) {
		return "", ErrOutside
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == ".." {
			return "", ErrOutside
		}
	}
	clean := path.Clean(name)
	if clean == "." {
		return clean, nil
	}
	if err := checkBelow(clean); err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, fs.ErrInvalid)
	}
	return clean, nil
}
