package wire

import "net/netip"

// The operations on ports. Each uses Request.Port.
//
//	listen  Started with Bound once it listens, then nothing: the port is open
//	        for as long as the stream is
//	accept  waits for a connection to that port; then Started with Caller
//	dial    Started once it is connected, or Error
//
// After accept and dial the stream is the connection: Data frames both ways,
// and DataEnd from the side that sends no more. A stream that ends without is a
// connection that was reset. The host opens every stream, these too: it alone
// decides how many connections there can be.
const (
	OpPortListen Op = "port.listen"
	OpPortAccept Op = "port.accept"
	OpPortDial   Op = "port.dial"
)

// The operations of the feature egress. A group of listeners shares one stream and
// its accepts, so that hundreds of addresses need no more streams than one port.
//
//	group      Started, then nothing: its listeners are open for as long as the
//	           stream is; accept with its id takes the connections of all of them
//	add        opens a listener of a group on one address, answers Bound
//	remove     closes one, answers an empty Result
//	datagrams  Started once the UDP port is open, then Datagram frames both ways
const (
	OpPortGroup     Op = "port.group"
	OpPortAdd       Op = "port.add"
	OpPortRemove    Op = "port.remove"
	OpPortDatagrams Op = "port.datagrams"
)

// Port is an operation on a port of the sandbox's loopback interface.
type Port struct {
	ID      string `json:"id,omitempty"` // names a listener, chosen by the host
	Port    int    `json:"port,omitempty"`
	Backlog int    `json:"backlog,omitempty"` // connections that may wait to be accepted
	// WithGrant requests the grant of each caller. Version 2.
	WithGrant bool `json:"who,omitempty"`
	// Grant shares the port with the listeners of other grants: this one gets the
	// callers of its grant. Feature shared-grants.
	Grant string `json:"grant,omitempty"`
	// Address is the address of a listener of a group, of NameAddresses; "" in add has
	// the guest choose a free one. Feature egress.
	Address string `json:"address,omitempty"`
}

// Bound answers listen and add: where the guest listens.
type Bound struct {
	IPv4    bool   `json:"ipv4"`
	IPv6    bool   `json:"ipv6"`
	Address string `json:"address,omitempty"` // of add
}

// Caller is the process that connected.
type Caller struct {
	Port int    `json:"port"`
	Peer string `json:"peer"` // address and port, in the sandbox
	// Grant is the open grant that the caller was started under, if any. Only if the
	// listener set WithGrant, or has a grant itself.
	Grant string `json:"grant,omitempty"`
	// Exec is the process of the wire that the caller descends from, if known. With
	// Grant only.
	Exec string `json:"exec,omitempty"`
	// To is the address and port that the caller connected to. Feature egress.
	To string `json:"to,omitempty"`
}

// FrameDatagram holds one datagram, in both directions.
const FrameDatagram FrameType = 38 // JSON Datagram

// Datagram is the content of a Datagram frame: one that a process in the sandbox
// sent, or the host's answer to one.
type Datagram struct {
	From  string `json:"from"` // address and port of the process in the sandbox
	Grant string `json:"grant,omitempty"`
	Exec  string `json:"exec,omitempty"`
	Data  []byte `json:"data"`
}

// NameAddresses is the range of loopback addresses that groups listen on. No program
// listens there by habit, so each address can stand for one name.
var NameAddresses = netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 77, 0, 0}), 16)

// NameInterface is the address of NameAddresses that the loopback interface of a
// sandbox has, where a runtime can add one: name lookups that ask for configured
// address families need one that is not 127.0.0.1.
var NameInterface = netip.AddrFrom4([4]byte{127, 77, 0, 1})

const (
	// CodePortTaken is a port that something else in the sandbox listens on.
	CodePortTaken Code = "port_taken"
	// CodeRefused is a port that nothing in the sandbox listens on.
	CodeRefused Code = "refused"
)

// Limits on ports.
const (
	// MaxListeners bounds the ports that a guest listens on, over all wires.
	MaxListeners = 32
	// MaxBacklog bounds the connections that wait at one.
	MaxBacklog = 256
	// MaxPortConns bounds the connections of a guest, over all wires.
	MaxPortConns = 512
	// MaxNameListeners bounds the listeners of all groups of a guest.
	MaxNameListeners = 1024
	// MaxDatagramPorts bounds the UDP ports of a guest.
	MaxDatagramPorts = 4
	// MaxDatagram bounds the bytes of one datagram.
	MaxDatagram = 4 << 10
	// MaxDatagramQueue bounds the datagrams that wait for one host. Further ones are
	// dropped.
	MaxDatagramQueue = 256
)
