package files

import (
	"crypto/rand"
	"errors"
	"io"
	"path"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// push creates the directories and files that the host sends.
func (c *Call) push(f *wire.File) error {
	if f.Scan == nil || f.Change == nil {
		return wire.Fail(wire.CodeInvalid, "the request lacks its operands")
	}
	p := &push{files: c.files, budget: newBudget(f.Scan), reader: c.Reader}
	if err := p.files.do(func() error { return p.open(&f.RootedPath, f.Change.MkdirAll) }); err != nil {
		return err
	}
	defer p.target.release()
	p.files.procs.Raise()
	defer p.files.procs.Release()
	if err := p.receive(); err != nil {
		return err
	}
	return c.result(p.FileEnd)
}

// push is one transfer from the host that runs.
type push struct {
	totals
	files  *Server
	budget *budget
	reader *wire.Reader
	target *dir
}

// open opens the target directory.
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

// take creates one file or directory.
func (p *push) take(node *wire.FileNode) error {
	if err := errors.Join(p.budget.spend(), p.budget.spendBytes(node.Size)); err != nil {
		return err
	}
	if err := checkPath(&wire.RootedPath{Root: "/", Path: node.Path}); err != nil || node.Path == "." {
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
	case wire.KindSymlink:
		p.Files++
		return p.files.do(func() error { return p.link(node) })
	}
	return wire.Fail(wire.CodeInvalid, "neither a file nor a directory nor a link")
}

// link makes a symbolic link, in the place of a file or link of its name.
func (p *push) link(node *wire.FileNode) error {
	if node.Size != 0 || !wire.ValidTarget(node.Target) {
		return wire.Fail(wire.CodeInvalid, "a link without a target")
	}
	parent, name, err := p.parent(string(node.Path))
	if err != nil {
		return err
	}
	defer parent.close()
	temp := tempPrefix + rand.Text()
	if err := unix.Symlinkat(string(node.Target), parent.fd, temp); err != nil {
		return fileError(err)
	}
	if err := unix.Renameat(parent.fd, temp, parent.fd, name); err != nil {
		_ = unix.Unlinkat(parent.fd, temp, 0)
		return fileError(err)
	}
	return nil
}

func (p *push) file(node *wire.FileNode) error {
	d := &tempFile{files: p.files, options: wire.FileWrite{Mode: node.Mode & 0o777}, mtime: node.MtimeNs}
	if err := p.files.do(func() error { return p.createTemp(d, string(node.Path)) }); err != nil {
		return err
	}
	defer p.files.do(d.discard) //nolint:errcheck // it always succeeds
	if err := d.fill(io.LimitReader(p.reader.Data(), node.Size+1)); err != nil {
		return err
	}
	return p.files.do(func() error { _, err := d.publish(); return err })
}

// createTemp creates the temporary file for a path in the tree.
func (p *push) createTemp(d *tempFile, name string) error {
	parent, base, err := p.parent(name)
	if err != nil {
		return err
	}
	return d.createAt(&location{dir: parent, name: base})
}

// parent opens the directory that a path in the tree is in, and makes it if it is not
// there.
func (p *push) parent(name string) (*dir, string, error) {
	above, base := path.Split(name)
	if above == "" {
		above = "."
	}
	parent, err := p.target.descend(path.Clean(above))
	if codeIs(err, wire.CodeFileNotFound) {
		parent, err = p.target.makeAll(path.Clean(above), defaultDirMode)
	}
	return parent, base, err
}
