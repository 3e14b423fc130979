package socket_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/wire/socket"
)

// TestHungUp: that the other side has left is seen before what it sent is read,
// and nothing of that is taken.
func TestHungUp(t *testing.T) {
	eachNetwork(t, func(t *testing.T, a, b net.Conn) {
		line := b.(*socket.Conn)
		if line.PeerClosed() {
			t.Fatal("hung up before anything was said")
		}
		if _, err := a.Write([]byte("last words")); err != nil {
			t.Fatal(err)
		}
		if line.PeerClosed() {
			t.Fatal("hung up, and only something was said")
		}
		_ = a.Close()
		for deadline := time.Now().Add(30 * time.Second); !line.PeerClosed(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("nobody noticed")
			}
		}
		if got, err := io.ReadAll(b); string(got) != "last words" || err != nil {
			t.Errorf("%q %v", got, err)
		}
		_ = b.Close()
		if !line.PeerClosed() {
			t.Error("our own end is closed")
		}
	})
}
