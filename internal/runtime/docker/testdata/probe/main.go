// The probe stands in for the guest in this package's tests: it is delivered,
// started and dialled like the guest, and runs commands, one JSON line
// for the question and one for the answer. As "probe calls" it tries system
// calls and prints what the kernel said.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

type question struct {
	Argv  []string
	Flood int // bytes to write to the log
}

type answer struct {
	Output string
	Code   int
}

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "init" && os.Args[2] == "--socket":
		serve(os.Args[3])
	case len(os.Args) == 2 && os.Args[1] == "calls":
		calls()
	case len(os.Args) == 3 && os.Args[1] == "pose":
		pose(os.Args[2])
	default:
		fmt.Fprintln(os.Stderr, "probe: strange arguments", os.Args)
		os.Exit(2)
	}
}

func serve(path string) {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go func() { <-end; os.Exit(0) }()
	fmt.Println("probe: ready")
	listener := listen(path)
	for {
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go talk(conn)
	}
}

func listen(path string) net.Listener {
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	return listener
}

// pose listens in the guest's place, as hostile code would.
func pose(path string) {
	listener := listen(path)
	fmt.Println("posing")
	for {
		if _, err := listener.Accept(); err != nil {
			panic(err)
		}
	}
}

func talk(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			return
		}
		text, err := json.Marshal(obey(q))
		if err != nil {
			return
		}
		if _, err := conn.Write(append(text, '\n')); err != nil {
			return
		}
	}
}

func obey(q question) answer {
	if q.Flood > 0 {
		line := strings.Repeat("x", 1023) + "\n"
		for range q.Flood / len(line) {
			fmt.Print(line)
		}
		return answer{}
	}
	var out bytes.Buffer
	cmd := exec.Command(q.Argv[0], q.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return answer{out.String(), exit.ExitCode()}
	case err != nil:
		return answer{err.Error(), -1}
	}
	return answer{out.String(), 0}
}

// noProcess is a process id that the kernel never gives.
const noProcess = 1 << 30

// calls tries what the filter should refuse, and some that it should allow, with
// arguments that do no harm where they are allowed: a clone that the kernel finds
// contradictory does not leave a copy of this program behind, which would hold its
// output open, and tracing no process does not stop it at the next signal.
func calls() {
	var area [256]byte
	pointer := uintptr(unsafe.Pointer(&area))
	for _, c := range []struct {
		name string
		trap uintptr
		args [3]uintptr
	}{
		{"getpid", unix.SYS_GETPID, [3]uintptr{}},
		{"socket-unix", unix.SYS_SOCKET, [3]uintptr{unix.AF_UNIX, unix.SOCK_STREAM}},
		{"unshare-user", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWUSER}},
		{"clone-user", unix.SYS_CLONE, [3]uintptr{unix.CLONE_NEWUSER | unix.CLONE_FS}},
		{"clone3", unix.SYS_CLONE3, [3]uintptr{0, 0}},
		{"setns", unix.SYS_SETNS, [3]uintptr{0, 0}},
		{"keyctl", unix.SYS_KEYCTL, [3]uintptr{0, ^uintptr(2)}},
		{"add_key", unix.SYS_ADD_KEY, [3]uintptr{pointer, pointer}},
		{"request_key", unix.SYS_REQUEST_KEY, [3]uintptr{pointer, pointer}},
		{"bpf", unix.SYS_BPF, [3]uintptr{0, pointer, 256}},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [3]uintptr{1, pointer}},
		{"ptrace", unix.SYS_PTRACE, [3]uintptr{unix.PTRACE_ATTACH, noProcess}},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [3]uintptr{uintptr(os.Getpid())}},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [3]uintptr{pointer}},
		{"userfaultfd", unix.SYS_USERFAULTFD, [3]uintptr{1}},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [3]uintptr{0, pointer}},
		{"mount", unix.SYS_MOUNT, [3]uintptr{pointer, pointer, pointer}},
		{"chroot", unix.SYS_CHROOT, [3]uintptr{pointer}},
		{"kexec_load", unix.SYS_KEXEC_LOAD, [3]uintptr{}},
		{"socket-alg", unix.SYS_SOCKET, [3]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}},
		{"socket-vsock", unix.SYS_SOCKET, [3]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}},
		{"personality-norandomize", unix.SYS_PERSONALITY, [3]uintptr{0x0040000}},
	} {
		_, _, errno := syscall.RawSyscall(c.trap, c.args[0], c.args[1], c.args[2])
		verdict := "ok"
		if errno != 0 {
			verdict = unix.ErrnoName(errno)
		}
		fmt.Println(c.name + "=" + verdict)
	}
}
