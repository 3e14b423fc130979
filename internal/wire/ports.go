package wire

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
}

// Bound answers listen: where the guest listens.
type Bound struct {
	IPv4 bool `json:"ipv4"`
	IPv6 bool `json:"ipv6"`
}

// Caller is the process that connected.
type Caller struct {
	Port int    `json:"port"`
	Peer string `json:"peer"` // address and port, in the sandbox
	// Grant is the open grant that the caller was started under, if any. Only if the
	// listener set WithGrant, or has a grant itself.
	Grant string `json:"grant,omitempty"`
}

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
)
