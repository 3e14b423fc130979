package wiretest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// Recorder relays between a host and a guest, and records what they send.
type Recorder struct {
	Dial func(context.Context) (net.Conn, error) // to the guest

	mu        sync.Mutex
	recording Recording
	busy      sync.WaitGroup
}

// Connect is the dialer of the host.
func (r *Recorder) Connect(ctx context.Context) (net.Conn, error) {
	guest, err := r.Dial(ctx)
	if err != nil {
		return nil, err
	}
	host, ours, err := pair()
	if err != nil {
		guest.Close()
		return nil, err
	}
	r.busy.Go(func() {
		defer ours.Close()
		defer guest.Close()
		r.wire(ours, guest)
	})
	return host, nil
}

// Recording returns what was sent, after all connections have ended.
func (r *Recorder) Recording() *Recording {
	r.busy.Wait()
	return &r.recording
}

// wire relays one wire.
func (r *Recorder) wire(host, guest net.Conn) {
	hello, err := wire.ReadHello(host)
	if err != nil {
		return
	}
	welcome, err := wire.Handshake(guest, hello)
	if err != nil || wire.WriteWelcome(host, welcome) != nil {
		return
	}
	r.mu.Lock()
	r.recording.Welcome = *welcome
	r.mu.Unlock()
	if hello.Kind == wire.KindDirect {
		r.relay(host, guest, true)
		return
	}
	r.streams(host, guest)
}

func (r *Recorder) streams(host, guest net.Conn) {
	inward, err := wire.GuestMux(host)
	if err != nil {
		return
	}
	defer inward.Close()
	outward, err := wire.HostMux(guest)
	if err != nil {
		return
	}
	defer outward.Close()
	var relays sync.WaitGroup
	defer relays.Wait()
	for {
		stream, err := inward.Accept()
		if err != nil {
			return
		}
		relays.Go(func() {
			defer stream.Close()
			if onward, err := outward.Open(); err == nil {
				defer onward.Close()
				r.relay(stream, onward, false)
			}
		})
	}
}

// relay relays one stream, or a direct connection with one exchange after the
// other.
func (r *Recorder) relay(host, guest net.Conn, direct bool) {
	t := &exchangeLog{recorder: r, direct: direct}
	var answers sync.WaitGroup
	answers.Go(func() { t.relayAnswers(guest, host) })
	t.relayRequests(newReader(host), guest)
	guest.Close()
	answers.Wait()
}

// exchangeLog records the exchanges of a stream.
type exchangeLog struct {
	recorder *Recorder
	direct   bool
	talk     *Exchange
}

func (t *exchangeLog) begin(request json.RawMessage) {
	t.recorder.mu.Lock()
	defer t.recorder.mu.Unlock()
	t.talk = &Exchange{Direct: t.direct, Request: request}
	t.recorder.recording.Exchanges = append(t.recorder.recording.Exchanges, t.talk)
}

func (t *exchangeLog) note(e Event) {
	t.recorder.mu.Lock()
	defer t.recorder.mu.Unlock()
	if t.talk != nil {
		t.talk.Events = append(t.talk.Events, e)
	}
}

// relayRequests relays what the host sends, until it leaves.
func (t *exchangeLog) relayRequests(from *reader, guest net.Conn) {
	defer t.note(Event{Host: true})
	for {
		request, err := from.request()
		if err != nil {
			return
		}
		if request != nil {
			t.begin(request)
			err = writeRequest(guest, request)
		} else {
			var frame wire.Frame
			if frame, err = from.frame(); err != nil {
				return
			}
			t.note(eventOf(true, frame))
			err = write(guest, frame.Type, frame.Payload)
		}
		if err != nil {
			return
		}
	}
}

// relayAnswers relays what the guest sends, until it closes.
func (t *exchangeLog) relayAnswers(guest, host net.Conn) {
	defer host.Close()
	from := newReader(guest)
	for {
		frame, err := from.frame()
		if err != nil {
			t.note(Event{})
			return
		}
		t.note(eventOf(false, frame))
		if write(host, frame.Type, frame.Payload) != nil {
			return
		}
	}
}

func writeRequest(w net.Conn, request json.RawMessage) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...))
	return err
}

// pair is two ends of a socket.
func pair() (one, other net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		ends[i], err = net.FileConn(file)
		_ = file.Close()
		if err != nil {
			return nil, nil, err
		}
	}
	return ends[0], ends[1], nil
}
