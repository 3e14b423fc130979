package spawn

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Isolation describes a process with namespaces, capabilities and descriptors of its own.
// The zero value is a process without.
type Isolation struct {
	Namespaces uintptr // CLONE_NEW flags
	// Groups are descriptors of the files that add to control groups the process
	// which writes 0: it does so before anything else. With version 1 those are
	// the files "tasks": the kernel moves a single thread that asks for itself
	// without waiting for all others, which takes ten milliseconds.
	Groups []int
	// WaitFD is a descriptor from which the process reads one byte after it has set up
	// its descriptors and closed all others. Until then the parent can write its user
	// mapping; if the parent ends, the read returns. 0: it does not wait.
	WaitFD int
	// Ambient are the ambient capabilities of the program. The process must have them in
	// its user namespace.
	Ambient []uintptr
	// Join are namespaces that the process enters, if it has their descriptors.
	Join Join
	// Inherit are descriptors that become 3, 4 and so on. They must be above those.
	Inherit []int
}

func (b *Isolation) maxSteps() int {
	return len(b.Groups) + len(b.Ambient) + len(b.Inherit) + b.Join.maxSteps() + 4
}

// enterGroups adds the child to its control groups.
func (s *childProgram) enterGroups(groups []int) {
	if len(groups) == 0 {
		return
	}
	own := new(byte)
	*own = '0'
	s.pinner.Pin(own)
	for _, fd := range groups {
		s.add(StageGroup, unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(own)), 1)
	}
}

// waitForByte makes the child read a byte from wait. It first closes the copies of its
// parent's descriptors, which include locks and the other end of wait.
func (s *childProgram) waitForByte(wait int, free uintptr) {
	if wait == 0 {
		return
	}
	s.add(StageFiles, unix.SYS_DUP3, uintptr(wait), free, unix.O_CLOEXEC)
	s.add(0, unix.SYS_CLOSE_RANGE, free+1, 1<<32-1, 0)
	word := new(byte)
	s.pinner.Pin(word)
	s.add(StageFork, unix.SYS_READ, free, uintptr(unsafe.Pointer(word)), 1)
}

// keepCapabilities makes the child raise its ambient capabilities.
func (s *childProgram) keepCapabilities(b *Isolation) {
	if len(b.Ambient) == 0 {
		return
	}
	header, data := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, capabilitySets(b.Ambient)
	s.pinner.Pin(header)
	s.pinner.Pin(data)
	s.add(StageCapabilities, unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)))
	for _, capability := range b.Ambient {
		s.add(StageCapabilities, unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, capability)
	}
}

// capabilitySets returns the capabilities, and no others, in all sets.
func capabilitySets(all []uintptr) *[2]unix.CapUserData {
	var data [2]unix.CapUserData
	for _, capability := range all {
		half, bit := &data[capability/32], uint32(1)<<(capability%32)
		half.Effective |= bit
		half.Permitted |= bit
		half.Inheritable |= bit
	}
	return &data
}

// files makes the child set up its descriptors, and returns the first free number.
func (s *childProgram) files(attr *Attr) (free uintptr) {
	for _, fd := range append(attr.Files[:], attr.Inherit...) {
		s.add(StageFiles, unix.SYS_DUP3, uintptr(fd), free, 0)
		free++
	}
	return free
}
