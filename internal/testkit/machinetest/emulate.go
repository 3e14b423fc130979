package machinetest

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// ArchEnv is the environment variable that has the guests of all tests be of
// another architecture than the host's:
//
//	ATOLL_TEST_GUEST_ARCH=arm64 go test ./internal/machine
const ArchEnv = "ATOLL_TEST_GUEST_ARCH"

// emulators run programs of other architectures. They are called by their names:
// that the kernel starts them by itself would have to be set up by whoever owns
// the machine.
func emulators() map[string]string {
	return map[string]string{"arm64": "qemu-aarch64-static", "amd64": "qemu-x86_64-static"}
}

// emulated decides for an architecture, and makes sure that it can be had.
func (o *Options) emulated(tb testing.TB) *Options {
	tb.Helper()
	decided := *o
	if decided.Arch == "" {
		decided.Arch = os.Getenv(ArchEnv)
		leaveOut(tb, decided.Arch)
	}
	if decided.Arch == "" {
		decided.Arch = runtime.GOARCH
	}
	if program := decided.emulator(); program != "" {
		need.Program(tb, strings.TrimSpace(program), "qemu-user-static")
	}
	return &decided
}

// emulator is what stands before the guest on its command line.
func (o *Options) emulator() string {
	if o.Arch == runtime.GOARCH {
		return ""
	}
	return emulators()[o.Arch] + " "
}

// leaveOut skips a test that is about something which an emulator does not do as
// a kernel does, if all guests are emulated.
func leaveOut(tb testing.TB, arch string) {
	tb.Helper()
	if arch == "" || arch == runtime.GOARCH {
		return
	}
	test, _, _ := strings.Cut(tb.Name(), "/")
	if reason := LeftOut()[test]; reason != "" {
		tb.Skipf("not with an emulated guest: %s", reason)
	}
}

// emulatedPatience is how long an emulated guest may take to start.
const emulatedPatience = 30 * time.Second

// LeftOut are the tests that a guest cannot pass whose system calls are emulated
// (qemu 7.2), and why.
func LeftOut() map[string]string {
	const (
		mounts  = "it has no openat2, and no mount ids in statx, to notice a mount of the same file system by"
		memory  = "the memory is the emulator's"
		signals = "signals reach the emulator's handlers, and there is no seccomp to keep limits from being set"
		slow    = "it is slower than the test allows for"
	)
	return map[string]string{
		"TestExecResults":                           "programs inherit the emulator's own descriptors",
		"TestExecConcurrently":                      slow,
		"TestExecTooManyAtOnce":                     slow,
		"TestFilesRefuseByName":                     mounts,
		"TestFilesRacingMounts":                     mounts,
		"TestFilesListKinds":                        mounts,
		"TestFilesLeaveTheGuestSmall":               memory,
		"TestGuestIsSmall":                          memory,
		"TestGuestCannotBeKilledFromInside":         signals,
		"TestGuestWithoutDescriptors":               "the emulator needs descriptors to start",
		"TestTimeoutEndsTheWholeTree":               slow,
		"TestGuestIsRestarted":                      slow,
		"TestCancelWhileThePausedGuestCannotAnswer": slow,
	}
}
