package spawn

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Isolation is about a process that begins in places of its own. The zero value is
// one that does not.
type Isolation struct {
	Namespaces uintptr // CLONE_NEW flags
	// Groups are descriptors of the files that add to control groups the process
	// which writes 0: it does so before anything else. With version 1 those are
	// the files "tasks": the kernel moves a single thread that asks for itself
	// without waiting for all others, which takes ten milliseconds.
	Groups []int
	// Gate is a descriptor from which it reads one byte before it does anything
	// but take its own descriptors and let go of all others: so long, others can
	// say who it is, and if they end, the gate does. 0 is none.
	WaitFD int
	// Ambient are capabilities that its program has, though its user is not root.
	// It must have them in its user namespace.
	Ambient []uintptr
	// Inherit are descriptors for its 3, 4 and so on, themselves above those.
	Inherit []int
}

func (b *Isolation) maxSteps() int { return len(b.Groups) + len(b.Ambient) + len(b.Inherit) + 4 }

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

// waitForByte has the child wait. It has copies of all descriptors of its parent,
// the other side of the gate and locks among them: it closes them first.
func (s *childProgram) waitForByte(gate int, free uintptr) {
	if gate == 0 {
		return
	}
	s.add(StageFiles, unix.SYS_DUP3, uintptr(gate), free, unix.O_CLOEXEC)
	s.add(0, unix.SYS_CLOSE_RANGE, free+1, 1<<32-1, 0)
	word := new(byte)
	s.pinner.Pin(word)
	s.add(StageFork, unix.SYS_READ, free, uintptr(unsafe.Pointer(word)), 1)
}

// keepCapabilities has the child keep the capabilities that it is to keep.
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

// capabilitySets are those capabilities and no others, in all sets.
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

// files gives the child its descriptors, and returns the first that it has no
// more of.
func (s *childProgram) files(attr *Attr) (free uintptr) {
	for _, fd := range append(attr.Files[:], attr.Inherit...) {
		s.add(StageFiles, unix.SYS_DUP3, uintptr(fd), free, 0)
		free++
	}
	return free
}
