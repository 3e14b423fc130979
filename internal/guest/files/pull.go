package files

import (
	"bufio"

	"github.com/atoll-run/atoll/internal/wire"
)

// pull sends a file or a directory tree.
func (c *Call) pull(f *wire.File) error {
	return wire.WithPart(f.Scan, func(scan *wire.FileScan) error {
		exclude, err := newGlobs(scan.Exclude)
		if err != nil {
			return err
		}
		out := bufio.NewWriterSize(c.Stream, wire.HeaderSize+wire.DataFrame)
		p := &pull{files: c.files, budget: newBudget(scan), skip: scan.SkipRefused, links: scan.Links, out: out, data: wire.NewDataWriter(out)}
		defer p.data.Close()
		if c.Direct {
			p.data.Large()
		}
		p.budget.gone = c.stopWhenHostLeaves()
		p.files.procs.Raise()
		defer p.files.procs.Release()
		p.walker = &walker{files: p.files, budget: p.budget, exclude: exclude, visit: p.visit, refused: p.leaveOut}
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

// pull is one transfer to the host that runs.
type pull struct {
	totals
	files   *Server
	budget  *budget
	walker  *walker
	skip    bool
	links   bool // symbolic links are sent as such, and each name of a hard link as a file
	out     *bufio.Writer
	data    *wire.DataWriter
	failure error // the first refusal, unless refusals are skipped
}

func (p *pull) run(place *wire.RootedPath) error {
	var at *location
	top := &walkEntry{path: "."}
	err := p.files.do(func() (err error) {
		if at, err = p.files.locate(place); err == nil {
			top.info, err = at.stat()
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
	if top.info.kind() != wire.KindDir {
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

// visit sends one entry of the walk.
func (p *pull) visit(n *walkEntry) error {
	if p.failure != nil {
		return p.failure
	}
	switch {
	case n.info.kind() == wire.KindDir && !n.info.mount:
		return p.node(n)
	case n.info.kind() == wire.KindSymlink && p.links:
		return p.link(n)
	}
	return p.file(n)
}

// link sends the target of a symbolic link, which is not followed.
func (p *pull) link(n *walkEntry) error {
	var target wire.Text
	_ = p.files.do(func() error { target = n.target(); return nil })
	if !wire.ValidTarget(target) { // it was replaced, or is longer than a path can be
		p.leaveOut(n.path, refuse(wire.CodeSymlink))
		return p.failure
	}
	p.Files++
	return wire.WriteJSON(p.out, wire.FrameNode, wire.FileNode{Path: wire.Text(n.path), Kind: wire.KindSymlink, MtimeNs: n.info.mtime, Target: target})
}

// leaveOut records what cannot be sent, and fails the transfer unless it skips those.
func (p *pull) leaveOut(name string, err error) {
	if !p.skip && p.failure == nil {
		p.failure = withSubject(name, err)
	}
	p.refused(name, err)
}

// node sends the header of a file or directory.
func (p *pull) node(n *walkEntry) error {
	node := wire.FileNode{Path: wire.Text(n.path), Kind: n.info.kind(), Mode: n.info.mode & 0o777, MtimeNs: n.info.mtime}
	if node.Kind == wire.KindDir {
		p.Dirs++
	} else {
		p.Files++
		p.Bytes += n.info.size
		node.Size = n.info.size
	}
	return wire.WriteJSON(p.out, wire.FrameNode, node)
}

// file sends a regular file.
func (p *pull) file(n *walkEntry) error {
	refuse := (*fileInfo).refuseIrregular
	if p.links {
		refuse = (*fileInfo).refuseOther
	}
	fd, err := p.files.open(n, refuse)
	if err != nil {
		p.leaveOut(n.path, err)
		return p.failure
	}
	defer p.files.close(fd)
	if err := p.budget.spendBytes(n.info.size); err != nil {
		return err
	}
	if err := p.node(n); err != nil {
		return err
	}
	return p.files.sendRange(p.data, fd, 0, n.info.size)
}
