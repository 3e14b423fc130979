package machine

import (
	"errors"
	"io/fs"

	"github.com/atoll-run/atoll/internal/wire"
)

// Why a file was refused. Missing, existing and forbidden files are
// fs.ErrNotExist, fs.ErrExist and fs.ErrPermission.
var (
	// ErrOutside is a path beneath none of the roots.
	ErrOutside = errors.New("is outside the directories that may be reached")
	// ErrReadOnly is a change where nothing may be changed.
	ErrReadOnly = errors.New("is read-only")
	// ErrSymlink is a symbolic link, at the path or above it.
	ErrSymlink = errors.New("is or passes through a symbolic link")
	// ErrHardLink is a file that has other names, perhaps elsewhere.
	ErrHardLink = errors.New("is a file with several names (hard links)")
	// ErrFIFO is a named pipe.
	ErrFIFO = errors.New("is a named pipe")
	// ErrSocket is a socket.
	ErrSocket = errors.New("is a socket")
	// ErrDevice is a device.
	ErrDevice = errors.New("is a device")
	// ErrMount is another file system, mounted at the path or above it.
	ErrMount = errors.New("is or passes through a mount")
	// ErrIsDir is a directory where a file was expected.
	ErrIsDir = errors.New("is a directory")
	// ErrNotDir is something else where a directory was expected.
	ErrNotDir = errors.New("is not a directory")
	// ErrNotEmpty is a directory that cannot go because of what is in it.
	ErrNotEmpty = errors.New("is a directory that is not empty")
	// ErrChanged is a file that is not in the version that was expected.
	ErrChanged = errors.New("has changed since it was read")
	// ErrTooLarge is more bytes, entries or depth than allowed.
	ErrTooLarge = errors.New("is too large")
	// ErrNoSpace is a disk or quota without room.
	ErrNoSpace = errors.New("no space left in the sandbox")
	// ErrTimeout is an operation that took longer than it may.
	ErrTimeout = errors.New("took too long")
)

// fileKinds are the errors of the codes that concern files and ports.
var fileKinds = map[wire.Code]error{
	wire.CodeFileNotFound: fs.ErrNotExist,
	wire.CodeFileExists:   fs.ErrExist,
	wire.CodeForbidden:    fs.ErrPermission,
	wire.CodeOutside:      ErrOutside,
	wire.CodeReadOnly:     ErrReadOnly,
	wire.CodeSymlink:      ErrSymlink,
	wire.CodeHardLink:     ErrHardLink,
	wire.CodeFIFO:         ErrFIFO,
	wire.CodeSocket:       ErrSocket,
	wire.CodeDevice:       ErrDevice,
	wire.CodeMount:        ErrMount,
	wire.CodeIsDir:        ErrIsDir,
	wire.CodeNotDir:       ErrNotDir,
	wire.CodeNotEmpty:     ErrNotEmpty,
	wire.CodeChanged:      ErrChanged,
	wire.CodeTooLarge:     ErrTooLarge,
	wire.CodeNoSpace:      ErrNoSpace,
	wire.CodeTimeout:      ErrTimeout,
	wire.CodePortTaken:    ErrPortTaken,
	wire.CodeRefused:      ErrRefused,
}
