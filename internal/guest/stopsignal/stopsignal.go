// Package stopsignal tells a sandbox's process 1 when it is asked to end from
// outside, and only then: everybody inside can send it the same signal, and
// package os/signal does not say who sent one.
//
// So there is a signal handler of our own, a few instructions long. It looks at
// what the kernel says of the sender: a process outside the pid namespace has
// number 0, and a code of 0 means that the kernel says so and not the sender.
package stopsignal

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// handler and restorer are written in assembly. handlerPC and restorerPC
// return where they are.
func handlerPC() uintptr
func restorerPC() uintptr

// notify is the descriptor to which the handler writes one. A signal handler
// has no other place to look for it.
var notify int32

// one is what the handler writes.
var one uint64 = 1

const (
	saSigInfo  = 0x4
	saRestorer = 0x04000000
	saOnStack  = 0x08000000
	saRestart  = 0x10000000
)

// Watch takes over sig, for good. The file becomes readable when sig came from
// outside the pid namespace. It is to be called once.
func Watch(sig unix.Signal) (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	notify = int32(fd)
	action := struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}{handlerPC(), saSigInfo | saOnStack | saRestart | saRestorer, restorerPC(), ^uint64(0)}
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	if errno != 0 {
		unix.Close(fd)
		return nil, fmt.Errorf("signal %v: %w", sig, errno)
	}
	return os.NewFile(uintptr(fd), "stop signal"), nil
}
