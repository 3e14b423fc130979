package wire

// The exit codes of the guest program's connect where the connection is not made, for a host
// that asks whether a network is closed.
const (
	ConnectClosed  = 1 // nothing answered, or something on the way did not let it through
	ConnectFailed  = 3 // any other reason, as a refusal by the other end
	ConnectNoRoute = 4 // as ConnectClosed, where the network namespace has no default route
)
