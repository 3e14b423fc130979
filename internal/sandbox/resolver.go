package sandbox

import "strings"

// NameServer is the resolver of every sandbox without a network. Nothing answers there
// unless the host opens the port (machine.ListenDatagrams).
const NameServer = "127.0.0.1"

// ResolverOptions returns the options of that resolver: the host may have to ask a person
// before it answers.
func ResolverOptions() []string { return []string{"timeout:5", "attempts:2"} }

// ResolvConf returns the /etc/resolv.conf of a sandbox without a network.
func ResolvConf() string {
	return "nameserver " + NameServer + "\noptions " + strings.Join(ResolverOptions(), " ") + "\n"
}

// Sysctls returns the kernel's settings of a sandbox's network: without a network of its
// own, any process may listen on any port of its loopback interface, as the guest has to.
func (s *Spec) Sysctls() map[string]string {
	if s.Network != "none" {
		return nil
	}
	return map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
}
