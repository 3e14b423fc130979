package hostpath

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Why a path was refused. Every refusal wraps exactly one of these, or an error
// of the system (fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, …).
var (
	ErrEscapes      = errors.New("leads out of its directory")
	ErrSymlink      = errors.New("is or passes through a symbolic link")
	ErrMagicLink    = errors.New("passes through a link of /proc")
	ErrHardLink     = errors.New("has more than one hard link")
	ErrFIFO         = errors.New("is a named pipe")
	ErrDevice       = errors.New("is a device")
	ErrSocket       = errors.New("is a socket")
	ErrDirectory    = errors.New("is a directory")
	ErrNotDirectory = errors.New("is not a directory")
	ErrNotRegular   = errors.New("is not a regular file")
	ErrTooLarge     = errors.New("is larger than allowed")
	ErrChanged      = errors.New("keeps changing while it is examined")
)

// refuse puts the subject in front of a reason.
func refuse(path string, reason error) error {
	return fmt.Errorf("%q: %w", path, reason)
}

// reasonOf names what the kernel meant by an error of a confined open.
func reasonOf(err error) error {
	switch {
	case errors.Is(err, unix.EXDEV):
		return ErrEscapes
	case errors.Is(err, unix.ELOOP):
		return ErrSymlink
	case errors.Is(err, unix.ENOTDIR):
		return ErrNotDirectory
	case errors.Is(err, unix.EISDIR):
		return ErrDirectory
	case errors.Is(err, unix.ENXIO):
		return ErrSocket
	}
	return err
}
