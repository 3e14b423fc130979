package memory

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// Limits of what is indexed.
const (
	MaxFile  = 2 << 20
	MaxFiles = 2000
	maxDepth = 8
)

// indexed reports whether a path, below the workspace, is a memory.
func indexed(name string) bool {
	name = path.Clean(name)
	return name == "MEMORY.md" || (strings.HasPrefix(name, "memory/") && strings.HasSuffix(name, ".md"))
}

// list names the memories below a directory, in order. What cannot be read, and
// what is beyond the limits, is left out.
func list(root *os.File) []string {
	names := []string{"MEMORY.md"}
	walk(root, "memory", maxDepth, &names)
	slices.Sort(names)
	return names
}

func walk(root *os.File, dir string, depth int, names *[]string) {
	at, err := hostpath.OpenBeneath(root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil || depth == 0 {
		return
	}
	defer at.Close()
	for len(*names) < MaxFiles {
		entries, err := at.ReadDir(128)
		if err != nil {
			return
		}
		for _, e := range entries {
			switch name := path.Join(dir, e.Name()); {
			case len(*names) >= MaxFiles:
				return
			case e.IsDir():
				walk(root, name, depth-1, names)
			case e.Type().IsRegular() && indexed(name):
				*names = append(*names, name)
			}
		}
	}
}

// read returns a memory's text; "" if there is none.
func read(root *os.File, name string) (string, error) {
	data, err := hostpath.ReadRegularBeneath(root, name, MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.ToValidUTF8(string(data), "�"), err
}
