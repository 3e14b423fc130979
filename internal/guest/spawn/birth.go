package spawn

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Birth is about a process that begins in places of its own. The zero value is
// one that does not.
type Birth struct {
	Namespaces uintptr // CLONE_NEW flags
	// Gate is a descriptor from which it reads one byte before it does anything:
	// so long, others can say who it is. 0 is none.
	Gate int
	// Ambient are capabilities that its program has, though its user is not root.
	// It must have them in its user namespace.
	Ambient []uintptr
	// Inherit are descriptors for its 3, 4 and so on, themselves above those.
	Inherit []int
}

func (b *Birth) maxSteps() int { return len(b.Ambient) + len(b.Inherit) + 2 }

// bear has the child wait at the gate, and keep what it is to keep.
func (s *script) bear(b *Birth) {
	s.namespaces = b.Namespaces
	if b.Gate != 0 {
		word := new(byte)
		s.pinner.Pin(word)
		s.add(StageFork, unix.SYS_READ, uintptr(b.Gate), uintptr(unsafe.Pointer(word)), 1)
	}
	if len(b.Ambient) == 0 {
		return
	}
	header, data := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, sets(b.Ambient)
	s.pinner.Pin(header)
	s.pinner.Pin(data)
	s.add(StageCapabilities, unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)))
	for _, capability := range b.Ambient {
		s.add(StageCapabilities, unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, capability)
	}
}

// sets are those capabilities and no others, in all sets.
func sets(all []uintptr) *[2]unix.CapUserData {
	var data [2]unix.CapUserData
	for _, capability := range all {
		half, bit := &data[capability/32], uint32(1)<<(capability%32)
		half.Effective |= bit
		half.Permitted |= bit
		half.Inheritable |= bit
	}
	return &data
}

// inherit gives the child its descriptors, and returns the first that it has no
// more of.
func (s *script) inherit(fds []int) uintptr {
	const first = 3
	for i, fd := range fds {
		s.add(StageFiles, unix.SYS_DUP3, uintptr(fd), uintptr(first+i), 0)
	}
	return uintptr(first + len(fds))
}
