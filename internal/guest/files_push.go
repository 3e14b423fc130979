package guest

import (
	"errors"
	"io"
	"path"

	"github.com/atoll-run/atoll/internal/wire"
)

// filePush makes what the host sends: directories, and files in them.
func (c *fileCall) filePush(f *wire.File) error {
	if f.Scan == nil || f.Change == nil {
		return wire.Fail(wire.CodeInvalid, "the request lacks its operands")
	}
	p := &push{files: c.files, bounds: newBudget(f.Scan), reader: c.reader}
	if err := p.files.do(func() error { return p.open(&f.RootedPath, f.Change.MkdirAll) }); err != nil {
		return err
	}
	defer p.target.release()
	p.files.procs.raise()
	defer p.files.procs.release()
	if err := p.receive(); err != nil {
		return err
	}
	return c.result(p.FileEnd)
}

// push is a tree on its way from the host.
type push struct {
	totals
	files  *fileServer
	bounds *budget
	reader *wire.Reader
	target *dir
}

// open opens the directory that the tree goes into.
func (p *push) open(place *wire.RootedPath, mkdirAll bool) error {
	if place.ReadOnly {
		return refuse(wire.CodeReadOnly)
	}
	if mkdirAll {
		if err := p.files.mkdir(place, &wire.FileChange{MkdirAll: true}); err != nil {
			return err
		}
	}
	s, err := p.files.locate(place)
	if err != nil {
		return err
	}
	defer s.close()
	p.target, err = s.dir.descend(s.name)
	return err
}

func (p *push) receive() error {
	for {
		frame, err := p.reader.Frame()
		switch {
		case err != nil:
			return wire.Fail(wire.CodeInvalid, "the tree did not come to its end")
		case frame.Type == wire.FrameDataEnd:
			return nil
		case frame.Type != wire.FrameNode:
			return wire.Fail(wire.CodeInvalid, "a frame is out of place in a tree")
		}
		var node wire.FileNode
		if err := frame.Decode(&node); err != nil {
			return wire.Fail(wire.CodeInvalid, err.Error())
		}
		if err := p.take(&node); err != nil {
			return withSubject(string(node.Path), err)
		}
	}
}

// take makes one file or directory.
func (p *push) take(node *wire.FileNode) error {
	if err := errors.Join(p.bounds.spend(), p.bounds.spendBytes(node.Size)); err != nil {
		return err
	}
	if err := checkPlace(&wire.RootedPath{Root: "/", Path: node.Path}); err != nil || node.Path == "." {
		return refuse(wire.CodeOutside)
	}
	switch node.Kind {
	case wire.KindDir:
		p.Dirs++
		return p.files.do(func() error {
			d, err := p.target.makeAll(string(node.Path), node.Mode|0o700)
			if err == nil {
				d.close()
			}
			return err
		})
	case wire.KindFile:
		p.Files++
		p.Bytes += node.Size
		return p.file(node)
	}
	return wire.Fail(wire.CodeInvalid, "neither a file nor a directory")
}

func (p *push) file(node *wire.FileNode) error {
	d := &tempFile{files: p.files, options: wire.FileWrite{Mode: node.Mode & 0o777}, mtime: node.MtimeNs}
	if err := p.files.do(func() error { return p.begin(d, string(node.Path)) }); err != nil {
		return err
	}
	defer p.files.do(d.discard) //nolint:errcheck // it is gone, or nobody's
	if err := d.fill(io.LimitReader(p.reader.Data(), node.Size+1)); err != nil {
		return err
	}
	return p.files.do(func() error { _, err := d.publish(); return err })
}

// begin makes a draft for a path in the tree.
func (p *push) begin(d *tempFile, name string) error {
	above, base := path.Split(name)
	if above == "" {
		above = "."
	}
	parent, err := p.target.descend(path.Clean(above))
	if codeIs(err, wire.CodeFileNotFound) {
		parent, err = p.target.makeAll(path.Clean(above), defaultDirMode)
	}
	if err != nil {
		return err
	}
	return d.beginAt(&location{dir: parent, name: base})
}
