package linux_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Without a network a sandbox has one more loopback address, all ports for everyone, and
// still no route. A host program that listens there cannot be reached.
func TestLoopbackForNames(t *testing.T) {
	for _, user := range []string{"0:0", "1234:2345"} {
		t.Run(user, func(t *testing.T) {
			l := newSite(t)
			i := l.start(func(s *sandbox.Spec) { s.User = user })
			for script, want := range map[string]string{
				"cat /etc/resolv.conf":                                                                           strings.TrimSpace(sandbox.ResolvConf()),
				"cat /proc/sys/net/ipv4/ip_unprivileged_port_start":                                              "0",
				"echo 1 2>/dev/null >/proc/sys/net/ipv4/ip_unprivileged_port_start || echo no":                   "no",
				"grep -q 127.77.0.1 /proc/net/fib_trie && echo yes":                                              "yes",
				"grep -vc '^lo' /proc/net/route":                                                                 "1", // its heading
				"ls /sys/class/net | grep -v -e lo -e tunl0 -e gre -e erspan0 -e vti0 -e sit0 -e tnl0 -e teql0 ": "",
				// Programs that ask for configured families only find an IPv4 address.
				"python3 -c 'import socket as s; print(s.getaddrinfo(\"127.77.3.4\", 80, s.AF_INET, s.SOCK_STREAM, 0, s.AI_ADDRCONFIG)[0][4][0])'":         "127.77.3.4",
				"python3 -c 'import socket as s; l = s.create_server((\"127.77.200.9\", 443)); print(s.create_connection(l.getsockname()).getpeername())'": "('127.77.200.9', 443)",
				"python3 -c 'import socket as s; s.create_connection((\"192.0.2.1\", 443))' 2>&1 | tail -n1":                                               "OSError: [Errno 101] Network is unreachable",
			} {
				if got, _ := l.try(i, script); got != want {
					t.Errorf("%s: %q, want %q", script, got, want)
				}
			}
		})
	}
}
