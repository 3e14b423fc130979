package service

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// enginePorts are those of the interfaces of container engines: who reaches one is root
// of the host.
var enginePorts = []int{2375, 2376, 2377}

// protectedPrograms are programs whose ports are never shown inside.
var protectedPrograms = []string{"atoll", "dockerd", "containerd", "podman", "crio", "kubelet"}

// checkService refuses ports of the host that must not be shown inside: those of the
// gateway, of engines, and of any Atoll.
func (s *Service) checkService(port int) error {
	what := ""
	gateway, err := s.Config.Gateway()
	switch {
	case port < 1 || port > 65535:
		return fmt.Errorf("service %d: it is no port", port)
	case err != nil:
		return err
	case port == gateway.Port:
		what = "the gateway's"
	case slices.Contains(enginePorts, port) || port == enginePort(s.Getenv("DOCKER_HOST")) || port == enginePort(s.Getenv("CONTAINER_HOST")):
		what = "an engine's"
	default:
		if program := listenerOf(port); slices.Contains(protectedPrograms, program) || program != "" && program == ownProgram() {
			what = program + "'s"
		}
	}
	if what == "" {
		return nil
	}
	return errhint.With(fmt.Errorf("service %d: the port is %s, which no sandbox is shown", port, what), "name the port of the service that the programs inside need")
}

// enginePort is the port of an address of an engine; 0 if it has none.
func enginePort(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}

func ownProgram() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Base(path)
}

// listenerOf returns the name of the program that listens on a port of the host, as far
// as this user can see it; "" otherwise.
func listenerOf(port int) string {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, inode := range listeningInodes(table, port) {
			if program := programOf("socket:[" + inode + "]"); program != "" {
				return program
			}
		}
	}
	return ""
}

// listeningInodes returns the inodes of the sockets of a table of the kernel that listen
// on a port.
func listeningInodes(table string, port int) (inodes []string) {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	const listening = "0A"
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != listening {
			continue
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseUint(hex, 16, 16); err == nil && int(n) == port {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}

// programOf returns the name of the program of a process that holds a socket.
func programOf(socket string) string {
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == socket {
			path, err := os.Readlink(filepath.Join(filepath.Dir(filepath.Dir(link)), "exe"))
			if err == nil {
				return strings.TrimSuffix(filepath.Base(path), " (deleted)")
			}
		}
	}
	return ""
}
