package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy"
)

// Paths finds the file that a model means. A *policy.PathMap is one.
type Paths interface {
	Resolve(input, cwd string) (policy.Path, error)
}

// resolve finds the file that the model means.
func (c *call) resolve(input string) (policy.Path, error) {
	if input == "" {
		return policy.Path{}, errors.New("the path is empty")
	}
	return c.set.Paths.Resolve(input, c.set.Workdir)
}

// resolveToChange is resolve for tools that write.
func (c *call) resolveToChange(input string) (policy.Path, error) {
	p, err := c.resolve(input)
	if err == nil && !p.Writable {
		err = fileError(p, machine.ErrReadOnly)
	}
	return p, err
}

// fileReasons say what is wrong with a file in the words of this package's
// reader, who knows tools and not system calls. The first that fits counts.
var fileReasons = []struct {
	kind error
	text string
	hint string
}{
	{fs.ErrNotExist, "no such file or directory", "look with ls what there is"},
	{fs.ErrExist, "exists already", ""},
	{fs.ErrPermission, "permission denied", ""},
	{machine.ErrReadOnly, "is read-only in this session", "write elsewhere, such as a directory that ls shows in the workspace, or /tmp with exec"},
	{machine.ErrIsDir, "is a directory", "list it with ls"},
	{machine.ErrNotDir, "is not a directory, or something above it is not", ""},
	{machine.ErrSymlink, "is or passes through a symbolic link, which file tools do not follow", "give the path that it leads to, or use exec"},
	{machine.ErrHardLink, "has several names (hard links), which file tools do not open", "make a copy with exec and use that"},
	{machine.ErrChanged, "has changed since this session read it", "read it again first"},
	{machine.ErrTooLarge, "is too large", "work on it in parts with exec"},
	{machine.ErrOutside, "is outside the directories that file tools reach", "use exec"},
	{machine.ErrMount, "is or passes through another file system", "use exec"},
	{machine.ErrFIFO, "is a named pipe", ""},
	{machine.ErrSocket, "is a socket", ""},
	{machine.ErrDevice, "is a device", ""},
}

// fileError names the file as the model knows it.
func fileError(p policy.Path, err error) error {
	if err == nil || isBeyondModel(err) {
		return err
	}
	for _, r := range fileReasons {
		if errors.Is(err, r.kind) {
			return errhint.With(&FileError{Path: p.Relative, text: r.text, err: err}, r.hint)
		}
	}
	return &FileError{Path: p.Relative, text: err.Error(), err: err}
}

// FileError is a file that could not be read or changed.
type FileError struct {
	Path string // relative to the workspace
	text string
	err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.text) }

func (e *FileError) Unwrap() error { return e.err }

// fileDetails are the fields of a result about one file.
type fileDetails struct {
	Path      string          `json:"path"`          // inside
	Host      string          `json:"host,omitzero"` // on the host
	Size      int64           `json:"size"`
	Version   guestfs.Version `json:"version,omitzero"`
	ModTimeMs int64           `json:"modTimeMs,omitzero"`
}

func detailsOfFile(p policy.Path, info guestfs.FileInfo) fileDetails {
	return fileDetails{Path: p.Container, Host: p.Host, Size: info.Size, Version: info.Version, ModTimeMs: info.ModTime.UnixMilli()}
}

// whole checks that a number of arguments is a whole one within bounds.
func whole(problems *[]error, name string, value, most int64) {
	if value < 0 || value > most {
		*problems = append(*problems, fmt.Errorf("%s must be between 0 and %d", place(name), most))
	}
}

// maxLines bounds arguments that count lines.
const maxLines = math.MaxInt32
