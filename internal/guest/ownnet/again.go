package ownnet

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/spawn"
)

// Again is the argument of Verb for a child that finds the namespaces ready.
const Again = "again"

// startAgain starts another child in the namespaces, which live on without the one before.
// That one, if it was only stopped, ends when its connection does.
func (n *Namespace) startAgain() error {
	ours, theirs, err := controlPair()
	if err != nil {
		return err
	}
	defer unix.Close(theirs)
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	defer null.Close()
	fd := int(null.Fd())
	child, err := spawn.Begin(&spawn.Attr{
		Path: "/proc/self/exe", Argv: []string{"atoll-guest", Verb, Again}, Files: [3]int{fd, fd, fd},
		Isolation: spawn.Isolation{
			Join: spawn.Join{User: n.User, Net: n.Net, Privileged: true}, Ambient: []uintptr{unix.CAP_NET_BIND_SERVICE}, Inherit: []int{theirs},
		},
	})
	if err == nil {
		err = child.Await()
	}
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	_ = n.control.Close()
	n.control = ours
	return nil
}

// openTables opens the lists of the sockets in a process's network. They can be read when
// that process has ended, too.
func openTables(pid int) (map[string]*os.File, error) {
	tables := map[string]*os.File{}
	for _, name := range []string{"tcp", "tcp6", "udp", "udp6"} {
		file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/net/" + name)
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("list of sockets: %w", err)
		}
		tables[name] = file
	}
	return tables, nil
}

// Table is the path of a list of the sockets in the network: tcp, tcp6, udp or udp6.
func (n *Namespace) Table(name string) string {
	file, ok := n.tables[name]
	if !ok {
		return "/proc/self/net/no-" + name
	}
	return "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
}
