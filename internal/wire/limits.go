package wire

import "time"

// The protocol versions this build speaks. A host speaks the previous version
// too, because a sandbox may outlive an upgrade of its host.
const (
	MinVersion = 1
	MaxVersion = 2
)

// Sizes. Each bounds what one side must hold for the other.
const (
	// MaxHello bounds a hello or welcome.
	MaxHello = 4 << 10
	// MaxRequest bounds a request. Linux itself refuses arguments and
	// environment beyond about 2 MiB, and a single string beyond 128 KiB.
	MaxRequest = 1 << 20
	// MaxFrame bounds the payload of a frame.
	MaxFrame = 64 << 10
	// Window is how much of one stream may be sent and not yet read by the other
	// side. It is yamux's smallest.
	Window = 256 << 10
	// MaxMessage bounds the text of an error.
	MaxMessage = 1 << 10
	// MaxID bounds the names of clients, boots and processes.
	MaxID = 64
)

// Counts.
const (
	// MaxStreams bounds the streams of one wire, open or closing. With Window
	// it bounds what a hostile guest can make a host hold for one wire: 64 MiB.
	MaxStreams = 256
	// MaxWires bounds the wires of one guest, over all clients.
	MaxWires = 64
	// MaxAnomalies is how many odd but harmless events (frames for streams
	// that are gone, say) a wire may show in AnomalyWindow before it is cut.
	MaxAnomalies = 4096
	// MaxPeerPings is how many pings a peer may send in AnomalyWindow. Each
	// costs this side a goroutine for as long as the peer does not read.
	MaxPeerPings = 64
	// AnomalyWindow is the time over which those two are counted.
	AnomalyWindow = 10 * time.Second
)

// Times.
const (
	// HelloTimeout bounds the handshake.
	HelloTimeout = 5 * time.Second
	// KeepAlive is how often a host pings a guest that it waits for. One that does
	// not answer within WriteTimeout loses its wire.
	KeepAlive = 5 * time.Second
	// WriteTimeout is how long a peer may refuse to read from the connection.
	WriteTimeout = 10 * time.Second
	// coalesceDelay is how long a frame that is not urgent may be held back.
	coalesceDelay = 2 * time.Millisecond
	// flushTimeout is how long sending what was held back may take when the wire is
	// closed.
	flushTimeout = 20 * time.Millisecond
	// closeTimeout is how long a closed stream waits for the peer's side.
	closeTimeout = 5 * time.Second
)

// Within returns n, but at most limit; and fallback if n is not positive.
func Within[T int | int64 | time.Duration](n, fallback, limit T) T {
	if n <= 0 {
		return fallback
	}
	return min(n, limit)
}

// Milliseconds rounds up, so that a short time does not become 0, which often
// means none.
func Milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
