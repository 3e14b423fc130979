// Package ownnet gives the processes of a sandbox a network namespace of their own, where
// the engine has started the guest in another and gives it no capability, and a mount
// namespace, in which files of the kernel are hidden. A process with several threads cannot
// enter a user namespace, so the guest stays where it is: a child of it is born in new
// namespaces, brings the loopback interface up, and makes sockets there for the guest. The processes that the guest starts join the namespaces. They can
// end that child, which is then started again.
package ownnet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Verb is the guest's verb for the child.
const Verb = "network"

// controlFD is the child's descriptor of its connection to the guest.
const controlFD = 3

// answerTimeout is how long the child may take for an answer. It makes sockets and does
// nothing else.
const answerTimeout = 2 * time.Second

// Namespace is the network of a sandbox's processes.
type Namespace struct {
	User, Net, Mount int // descriptors of the namespaces

	tables map[string]*os.File // the kernel's lists of sockets, by their names

	mu      sync.Mutex
	control *net.UnixConn
}

// Make starts the child in new namespaces. Nothing of the sandbox may run yet: for a moment
// the guest can be traced, as its child's mapping of users could not be written otherwise.
func Make() (*Namespace, error) {
	ours, theirs, err := controlPair()
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs)
	pid, err := start(theirs)
	if err != nil {
		return nil, fmt.Errorf("namespaces: %w", err)
	}
	n := &Namespace{control: ours}
	got, err := n.receive(3)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	n.User, n.Net, n.Mount = got[0], got[1], got[2]
	n.tables, err = openTables(pid)
	return n, err
}

// controlPair returns the guest's connection to a child, and the child's descriptor of it.
func controlPair() (ours *net.UnixConn, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, err
	}
	file := os.NewFile(uintptr(fds[0]), "network")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		unix.Close(fds[1])
		return nil, 0, err
	}
	return conn.(*net.UnixConn), fds[1], nil
}

func start(control int) (int, error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }()
	uid, gid := os.Getuid(), os.Getgid()
	return syscall.ForkExec("/proc/self/exe", []string{"atoll-guest", Verb}, &syscall.ProcAttr{
		Files: []uintptr{0, 1, 2, uintptr(control)},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_NET_BIND_SERVICE},
		},
	})
}

// request asks the child for a socket. A family of 0 is no request.
type request struct {
	family, kind byte
	bind         bool
	address      [16]byte
	port         uint16
	backlog      uint16
}

// Socket returns a socket of the sandbox's network that is not bound.
func (n *Namespace) Socket(family, kind int) (int, error) {
	return n.ask(request{family: byte(family), kind: byte(kind)})
}

// Bound returns a socket that is bound to an address, and listens if it is a stream.
func (n *Namespace) Bound(address unix.Sockaddr, kind, backlog int) (int, error) {
	r := request{kind: byte(kind), bind: true, backlog: uint16(backlog)}
	switch a := address.(type) {
	case *unix.SockaddrInet4:
		r.family, r.port = unix.AF_INET, uint16(a.Port)
		copy(r.address[:], a.Addr[:])
	case *unix.SockaddrInet6:
		r.family, r.port, r.address = unix.AF_INET6, uint16(a.Port), a.Addr
	default:
		return 0, unix.EAFNOSUPPORT
	}
	return n.ask(r)
}

// ask sends a request. A child that was ended, or that does not answer, is replaced once.
func (n *Namespace) ask(r request) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fd, err := n.askOnce(r)
	if !errors.Is(err, errNoChild) {
		return fd, err
	}
	if failed := n.startAgain(); failed != nil {
		return 0, errors.Join(err, failed)
	}
	return n.askOnce(r)
}

// errNoChild is a child that has ended, or does not answer.
var errNoChild = errors.New("the process that makes sockets has ended")

func (n *Namespace) askOnce(r request) (int, error) {
	_ = n.control.SetDeadline(time.Now().Add(answerTimeout))
	if _, err := n.control.Write(r.encode()); err != nil {
		return 0, errors.Join(unix.ENETDOWN, errNoChild, err)
	}
	got, err := n.receive(1)
	if err != nil {
		return 0, err
	}
	return got[0], nil
}

// receive returns the descriptors of an answer, or the child's error.
func (n *Namespace) receive(count int) ([]int, error) {
	var errno [1]byte
	rights := make([]byte, unix.CmsgSpace(count*4))
	read, more, _, _, err := n.control.ReadMsgUnix(errno[:], rights)
	switch {
	case err != nil || read != 1:
		return nil, errors.Join(unix.ENETDOWN, errNoChild, err)
	case errno[0] != 0:
		return nil, unix.Errno(errno[0])
	}
	messages, err := unix.ParseSocketControlMessage(rights[:more])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(unix.EBADMSG, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != count {
		return nil, errors.Join(unix.EBADMSG, err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, nil
}
