package guest

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/ownnet"
	"github.com/atoll-run/atoll/internal/guest/ports"
	"github.com/atoll-run/atoll/internal/guest/setup"
	"github.com/atoll-run/atoll/internal/guest/spawn"
)

// leaveNetwork makes a network namespace for all processes that the guest will start, and a
// mount namespace in which files of the kernel are hidden.
func (s *server) leaveNetwork() error {
	n, err := ownnet.Make()
	if err != nil {
		return fmt.Errorf("a network of its own: %w", err)
	}
	ports.UseNetwork(n)
	socketTable = n.Table
	dir, _ := os.Getwd()
	s.join = spawn.Join{User: n.User, Net: n.Net, Mount: n.Mount, Dir: dir, Filter: namespaceFilter(runtime.GOARCH)}
	return nil
}

// ServeNetwork is the process that makes sockets in that namespace; again says that it is
// not the first.
func ServeNetwork(again bool) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if again {
		return ownnet.Serve()
	}
	return ownnet.ServeFirst(func() error {
		if err := setup.EnableLoopback(); err != nil {
			return err
		}
		return setup.HideKernelFiles()
	})
}

// namespaceFlags are the flags of clone that make namespaces.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// namespaceFilter refuses the calls that make and enter namespaces and that mount, which the
// guest itself needs. The runtime's own profile refuses other architectures.
func namespaceFilter(arch string) []unix.SockFilter {
	audit := uint32(unix.AUDIT_ARCH_X86_64)
	if arch == "arm64" {
		audit = unix.AUDIT_ARCH_AARCH64
	}
	refuse := []unix.SockFilter{
		load(seccompNr),
		equal(unix.SYS_MOUNT, 7, 0), equal(unix.SYS_UNSHARE, 6, 0), equal(unix.SYS_SETNS, 5, 0), equal(unix.SYS_CLONE3, 3, 0), equal(unix.SYS_CLONE, 0, 4),
		load(argument(0)),
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: 1, Jf: 2, K: namespaceFlags},
		returns(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)), returns(returnEPERM),
		returns(unix.SECCOMP_RET_ALLOW),
	}
	return append([]unix.SockFilter{load(seccompArch), equal(audit, 1, 0), returns(returnEPERM)}, refuse...)
}
