package guestfs

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/wire"
)

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
