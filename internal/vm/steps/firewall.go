package steps

import "fmt"

const firewallUnit = "atoll-firewall.service"

// firewall lets the eight rows of the table in and out, and denies and logs the rest.
func (s *Setup) firewall() Step {
	unit := `# Written by atoll vm.
[Unit]
Description=What may enter and leave this virtual machine
DefaultDependencies=no
Wants=network-pre.target
Before=network-pre.target shutdown.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f ` + FirewallFile + `
ExecReload=/usr/sbin/nft -f ` + FirewallFile + `

[Install]
WantedBy=sysinit.target
`
	loaded := service(firewallUnit)
	loaded.Check += " && nft list table inet atoll >/dev/null"
	return Step{
		Name: "firewall", Needs: []string{"gateway"},
		Actions: []Action{packages("nftables"), file(FirewallFile, "0644", []byte(Rules(s.Profile.Port))), file(unitDir+firewallUnit, "0644", []byte(unit))},
		After:   []Action{loaded},
	}
}

// Rules returns the rules of the firewall for nft. They replace the table as a whole. Beyond
// the eight rows only what a network needs to exist is let through: answers, the loopback
// interface, DHCP and the neighbours of IPv6.
func Rules(port int) string {
	return fmt.Sprintf(`# Written by atoll vm.
table inet atoll
delete table inet atoll
table inet atoll {
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		ct state invalid drop
		iif lo accept
		icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-advert } accept
		udp sport 67 udp dport 68 accept
		tcp dport %d accept comment "gateway"
		tcp dport 22 accept comment "ssh"
		limit rate 10/second log prefix "atoll denied in: "
		drop
	}
	chain leaving {
		tcp dport 443 accept comment "https"
		tcp dport 80 accept comment "http, for packages"
		meta l4proto { tcp, udp } th dport 53 accept comment "dns"
		ip daddr 100.64.0.0/10 accept comment "tailscale"
		udp dport 41641 accept comment "tailscale, direct"
		udp dport 123 accept comment "ntp"
	}
	chain output {
		type filter hook output priority filter; policy drop;
		ct state established,related accept
		oif lo accept
		icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit } accept
		udp sport 68 udp dport 67 accept
		jump leaving
		limit rate 10/second log prefix "atoll denied out: "
		reject with icmpx admin-prohibited
	}
	chain forward {
		type filter hook forward priority filter; policy drop;
		ct state established,related accept
		jump leaving
		limit rate 10/second log prefix "atoll denied forward: "
		drop
	}
}
`, port)
}
