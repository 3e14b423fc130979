package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dialTimeout is how long a connection may take. One that is dropped on its way is odd: it
// got out.
const dialTimeout = 3 * time.Second

// reach connects to addresses of the cluster, in every way that a program has.
func reach(a *attempts, args []string) {
	for _, address := range args {
		conn, err := net.DialTimeout("tcp", address, dialTimeout)
		a.try("connect to "+address, err)
		if err == nil {
			_ = conn.Close()
		}
		a.try("a datagram to "+address, datagramTo(address))
	}
}

func datagramTo(address string) error {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("x"))
	return err
}

// links makes sockets below the Internet protocol, and interfaces.
func links(a *attempts, _ []string) {
	for _, s := range []struct {
		name                   string
		family, kind, protocol int
	}{
		{"raw ICMP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, {"raw IP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW},
		{"raw ICMPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6}, {"packet", unix.AF_PACKET, unix.SOCK_RAW, 0x0300}, {"packet datagram", unix.AF_PACKET, unix.SOCK_DGRAM, 0x0300},
	} {
		fd, err := unix.Socket(s.family, s.kind|unix.SOCK_CLOEXEC, s.protocol)
		a.try("a socket: "+s.name, err)
		if err == nil {
			unix.Close(fd)
		}
	}
	request, err := unix.NewIfreq("lo")
	must(err)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(err)
	defer unix.Close(fd)
	a.try("change an interface", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request))
	interfaces, err := net.Interfaces()
	must(err)
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback == 0 {
			a.try("see the interface "+i.Name, nil)
		}
	}
}

// enter enters the namespaces and the roots of every process that can be seen.
func enter(a *attempts, _ []string) {
	all, err := filepath.Glob("/proc/[0-9]*")
	must(err)
	for _, process := range all {
		for kind, flag := range map[string]int{"net": unix.CLONE_NEWNET, "user": unix.CLONE_NEWUSER, "mnt": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID} {
			name := process + "/ns/" + kind
			fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				a.try("open "+name, err)
				continue
			}
			a.try("enter "+name, unix.Setns(fd, flag))
			unix.Close(fd)
		}
		enterRoot(a, process)
	}
}

// enterRoot looks for a root that is not this process's own.
func enterRoot(a *attempts, process string) {
	theirs, err := os.Stat(process + "/root/")
	if err != nil {
		a.try("the root of "+process, refusalOf(err))
		return
	}
	own, err := os.Stat("/")
	must(err)
	if !os.SameFile(own, theirs) {
		a.try("another root: "+process, nil)
	}
}

// refusalOf is the error of the system in one of package os.
func refusalOf(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

// nodeFiles looks for what a node or a cluster leaves in pods.
func nodeFiles(a *attempts, _ []string) {
	for _, path := range []string{
		"/var/run/secrets/kubernetes.io/serviceaccount/token", "/run/secrets/kubernetes.io/serviceaccount/ca.crt", "/etc/kubernetes", "/var/lib/kubelet", "/etc/cni",
		"/run/containerd/containerd.sock", "/var/run/docker.sock", "/run/crio/crio.sock", "/var/lib/containerd", "/host", "/rootfs", "/var/log/pods",
	} {
		_, err := os.Lstat(path)
		a.try("find "+path, refusalOf(err))
	}
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "KUBERNETES_") {
			a.try("the environment says "+variable, nil)
		}
	}
}

// guestFile changes, replaces and reads the guest's program.
func guestFile(a *attempts, args []string) {
	program := args[0]
	a.try("write it", open(program, unix.O_WRONLY))
	a.try("read it", open(program, unix.O_RDONLY))
	a.try("remove it", unix.Unlink(program))
	a.try("replace it", unix.Rename(os.Args[0], program))
	a.try("change its mode", unix.Chmod(program, 0o777))
	a.try("a file beside it", open(filepath.Dir(program)+"/other", unix.O_WRONLY|unix.O_CREAT))
	a.try("a socket directory of another", unix.Rename(filepath.Dir(program)+"/wire", filepath.Dir(program)+"/other"))
}

// forgeWire speaks to the guest as a host would: by its socket, and by the bridge that an
// engine starts, also when that has lost its parent.
func forgeWire(a *attempts, args []string) {
	socket, program := args[0], args[1]
	conn, err := net.Dial("unix", socket)
	must(err)
	_, _ = conn.Write(forgedHello())
	a.try("its socket answers", answered(conn))
	for _, flags := range [][]string{{"pass"}, {"pass", "--trust-uid"}} {
		cmd := exec.Command("/bin/sh", "-c", `exec 3<&0; ( "$0" "$@" <&3 & ); sleep 3`, program)
		cmd.Args = append(cmd.Args, append(flags, "--socket", socket)...)
		cmd.Stdin = bytes.NewReader(forgedHello())
		out, _ := cmd.Output()
		err := error(unix.ECONNREFUSED)
		if strings.Contains(string(out), `"boot"`) {
			err = nil
		}
		a.try(fmt.Sprintf("a bridge %q", flags), err)
	}
}

// forgedHello begins a wire: whoever is admitted gets an answer.
func forgedHello() []byte {
	text := `{"min":1,"max":2,"client":"forged","epoch":1,"kind":"control"}`
	return append(binary.BigEndian.AppendUint32([]byte("atoll\x00\r\n"), uint32(len(text))), text...)
}

// answered reports whether the peer says anything before it closes the connection.
func answered(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(dialTimeout))
	if n, _ := conn.Read(make([]byte, 64)); n > 0 {
		return nil
	}
	return unix.ECONNREFUSED
}

// serveOne listens for others, until it is ended.
func serveOne(_ *attempts, args []string) {
	listener, err := net.Listen("tcp", args[0])
	must(err)
	fmt.Println("listening")
	for {
		conn, err := listener.Accept()
		must(err)
		_ = conn.Close()
	}
}
