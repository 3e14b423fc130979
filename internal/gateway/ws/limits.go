package ws

import (
	"cmp"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/membudget"
)

// Limits bound the memory and work that clients can cause.
type Limits struct {
	Handshake       time.Duration // until the first request; default 15 s
	EarlyFrame      int64         // bytes of the first request; default 64 KiB
	Frame           int64         // bytes of any other; default 25 MiB
	Waiting         int           // bytes of a request that has to wait for something; default 64 KiB
	Pace            membudget.Pace
	Buffered        int64         // bytes that a client leaves unread; default 50 MiB
	AllBuffered     int64         // of all clients together; default 512 MiB
	Unauthenticated int           // connections before authentication; default 1,024
	Calls           int           // of one connection that wait for something; default 64
	Ping            time.Duration // between pings; default 25 s
	Tick            time.Duration // between tick events; default 30 s
	Write           time.Duration // for one frame; default 1 minute
	Grace           time.Duration // for a slow client to answer the close; default 5 s
	AckWait         time.Duration // for a client's pong after the reply that a task was accepted; default 1 s
	Throttle        time.Duration // between two deltas of a chat; default 150 ms
	History         int           // bytes of a history; default 6 MiB
}

// maxHistory bounds the number of messages in a history.
const maxHistory = 1000

func (l Limits) withDefaults() Limits {
	l.Handshake = cmp.Or(l.Handshake, 15*time.Second)
	l.EarlyFrame = cmp.Or(l.EarlyFrame, protocol.MaxEarlyPayload)
	l.Frame = cmp.Or(l.Frame, protocol.MaxPayload)
	l.Waiting = cmp.Or(l.Waiting, 64<<10)
	l.Pace = l.Pace.OrDefault()
	l.Buffered = cmp.Or(l.Buffered, protocol.MaxBuffered)
	l.AllBuffered = cmp.Or(l.AllBuffered, 512<<20)
	l.Unauthenticated = cmp.Or(l.Unauthenticated, 1024)
	l.Calls = cmp.Or(l.Calls, 64)
	l.Ping = cmp.Or(l.Ping, 25*time.Second)
	l.Tick = cmp.Or(l.Tick, 30*time.Second)
	l.Write = cmp.Or(l.Write, time.Minute)
	l.Grace = cmp.Or(l.Grace, 5*time.Second)
	l.AckWait = cmp.Or(l.AckWait, time.Second)
	l.Throttle = cmp.Or(l.Throttle, 150*time.Millisecond)
	l.History = cmp.Or(l.History, 6<<20)
	return l
}
