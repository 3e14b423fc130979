// Package egress gives a sandbox without a network the names that its rules
// allow. It is the resolver of the sandbox: a name is answered with an address of
// 127.77.0.0/16 that stands for this name in this sandbox. A connection to that
// address comes over the wire to here, where the rule is looked up, the name is
// resolved, its addresses are checked, and one of them is connected to. No
// question of the sandbox is sent on.
//
// A [Server] serves the callers of one grant. It listens on port 53, on 3128 for
// programs that want a proxy (HTTP CONNECT, SOCKS5), and on the address of each
// name from the moment that it is asked for. What is done with a connection is
// said by its rule: "splice" relays TLS whose server name is the name, "inspect"
// and "http" hand it to the [Inspector], which reads each request, "tcp" relays
// anything.
//
// Every connection is in the audit log before its first byte goes out; if the log
// cannot be written, nothing goes out.
package egress
