package spawn

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Join are a user, a network and a mount namespace that a process enters, and the filter of
// system calls that it has from then on. A process that enters a user namespace has every
// capability there, and drops them all before its program runs.
type Join struct {
	User, Net int               // descriptors; 0: it stays where it is
	Mount     int               // the same; a process that enters it is in Dir, or in the root
	Dir       string            // an absolute path
	Filter    []unix.SockFilter // empty: none
	// Privileged is a process of the guest itself, which has the Ambient capabilities
	// there, and no filter.
	Privileged bool
}

// lastCapability is higher than any that a kernel has.
const lastCapability = 63

func (j *Join) maxSteps() int {
	return lastCapability + 10
}

// join makes the child enter the namespaces, and have its filter.
func (s *childProgram) join(j *Join) error {
	if j.User > 0 {
		if err := s.enterNamespaces(j); err != nil {
			return err
		}
	}
	if len(j.Filter) == 0 {
		return nil
	}
	s.add(StageCapabilities, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	program := &unix.SockFprog{Len: uint16(len(j.Filter)), Filter: unsafe.SliceData(j.Filter)}
	s.pinner.Pin(unsafe.SliceData(j.Filter))
	s.pinner.Pin(program)
	s.add(StageCapabilities, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(program)))
	return nil
}

func (s *childProgram) enterNamespaces(j *Join) error {
	s.add(StageNamespaces, unix.SYS_SETNS, uintptr(j.User), unix.CLONE_NEWUSER)
	s.add(StageNamespaces, unix.SYS_SETNS, uintptr(j.Net), unix.CLONE_NEWNET)
	if j.Mount > 0 {
		dir, err := s.text(j.Dir)
		if err != nil {
			return err
		}
		s.add(StageNamespaces, unix.SYS_SETNS, uintptr(j.Mount), unix.CLONE_NEWNS)
		s.add(0, unix.SYS_CHDIR, dir)
	}
	if j.Privileged {
		return nil
	}
	for capability := uintptr(0); capability <= lastCapability; capability++ {
		s.add(0, unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability) // fails for those that there are not
	}
	header, none := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &[2]unix.CapUserData{}
	s.pinner.Pin(header)
	s.pinner.Pin(none)
	s.add(StageCapabilities, unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(none)))
	return nil
}
