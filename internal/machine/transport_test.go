package machine_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
)

// carried is a connection whose transport may be lost.
type carried struct {
	net.Conn
	lost *atomic.Bool
}

func (c carried) TransportErr() error {
	if c.lost.Load() {
		return errors.New("the server between was restarted")
	}
	return nil
}

func (c carried) EndErr() error { return c.TransportErr() }

// TestLostTransportIsNoBrokenGuest: a server between host and guest may be restarted any
// number of times; a guest whose wire breaks by itself is broken after a few.
func TestLostTransportIsNoBrokenGuest(t *testing.T) {
	for _, transport := range []bool{true, false} {
		guest := machinetest.Start(t, nil)
		var lost atomic.Bool
		var last net.Conn
		m := machine.New(func(ctx context.Context) (net.Conn, error) {
			conn, err := guest.Dial(ctx)
			lost.Store(false)
			last = conn
			return carried{conn, &lost}, err
		}, &machine.Options{MaxBreaks: 3})
		var err error
		for range 10 {
			if err = m.Ping(patience(t)); errors.Is(err, machine.ErrBroken) {
				break
			}
			lost.Store(transport)
			_ = last.Close()
		}
		if broken := errors.Is(err, machine.ErrBroken); broken == transport {
			t.Errorf("transport lost: %v, declared broken: %v (%v)", transport, broken, err)
		}
		_ = m.Close()
	}
}
