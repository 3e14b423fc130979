package guest

import (
	"bufio"

	"github.com/atoll-run/atoll/internal/wire"
)

// filePull sends a file, or a directory with all that is in it.
func (c *fileCall) filePull(f *wire.File) error {
	return wire.WithPart(f.Scan, func(scan *wire.FileScan) error {
		exclude, err := newGlobs(scan.Exclude)
		if err != nil {
			return err
		}
		out := bufio.NewWriterSize(c.stream, wire.HeaderSize+wire.DataFrame)
		p := &pull{files: c.files, bounds: newBudget(scan), skip: scan.SkipRefused, out: out, data: wire.NewDataWriter(out)}
		defer p.data.Close()
		if c.direct {
			p.data.Large()
		}
		p.bounds.gone = c.stopWhenHostLeaves()
		p.files.procs.raise()
		defer p.files.procs.release()
		p.walker = &walker{files: p.files, bounds: p.bounds, exclude: exclude, visit: p.visit, refused: p.leaveOut}
		err = p.run(&f.RootedPath)
		if err == nil {
			err = p.failure
		}
		if err != nil {
			return err
		}
		if err := wire.WriteJSON(out, wire.FrameResult, p.FileEnd); err != nil {
			return err
		}
		return out.Flush()
	})
}

// pull is a tree on its way to the host.
type pull struct {
	totals
	files   *fileServer
	bounds  *budget
	walker  *walker
	skip    bool
	out     *bufio.Writer
	data    *wire.DataWriter
	failure error // why something was left out that should not be
}

func (p *pull) run(place *wire.RootedPath) error {
	var at *location
	top := &walkEntry{path: "."}
	err := p.files.do(func() (err error) {
		if at, err = p.files.locate(place); err == nil {
			top.facts, err = at.look()
		}
		return err
	})
	if at != nil {
		defer at.release()
	}
	if err != nil {
		return err
	}
	top.location = *at
	if top.facts.kind() != wire.KindDir {
		return p.file(top)
	}
	var d *dir
	if err := p.files.do(func() (err error) { d, err = at.openDir(); return err }); err != nil {
		return err
	}
	defer d.release()
	if err := p.node(top); err != nil {
		return err
	}
	return p.walker.walk(d, "", 1)
}

// visit sends what the walk has come to.
func (p *pull) visit(n *walkEntry) error {
	if p.failure != nil {
		return p.failure
	}
	if n.facts.kind() == wire.KindDir && !n.facts.mount {
		return p.node(n)
	}
	return p.file(n)
}

// leaveOut notes what cannot be sent, or makes it the end.
func (p *pull) leaveOut(name string, err error) {
	if !p.skip && p.failure == nil {
		p.failure = withSubject(name, err)
	}
	p.refused(name, err)
}

// node announces a file or directory.
func (p *pull) node(n *walkEntry) error {
	node := wire.FileNode{Path: wire.Text(n.path), Kind: n.facts.kind(), Mode: n.facts.mode & 0o777, MtimeNs: n.facts.mtime}
	if node.Kind == wire.KindDir {
		p.Dirs++
	} else {
		p.Files++
		p.Bytes += n.facts.size
		node.Size = n.facts.size
	}
	return wire.WriteJSON(p.out, wire.FrameNode, node)
}

// file sends a regular file.
func (p *pull) file(n *walkEntry) error {
	fd, err := p.files.open(n)
	if err != nil {
		p.leaveOut(n.path, err)
		return p.failure
	}
	defer p.files.close(fd)
	if err := p.bounds.spendBytes(n.facts.size); err != nil {
		return err
	}
	if err := p.node(n); err != nil {
		return err
	}
	return p.files.sendRange(p.data, fd, 0, n.facts.size)
}
