package ws_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/ws"
)

// idle is the memory that an idle connection may take: five thousand of them fit
// into 400 MB. The client's end is counted too, being in the same process.
const idle = 160 << 10

func TestIdleConnectionsAreSmall(t *testing.T) {
	const many = 300
	p := gateway(t, ws.Limits{})
	before := memory()
	var ends sync.WaitGroup
	var all []*protocol.Conn
	for range many {
		c, err := protocol.Dial(t.Context(), p.url, protocol.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		ends.Go(func() { quietly(t, c) })
	}
	defer ends.Wait()
	defer func() {
		for _, c := range all {
			c.Drop()
		}
	}()
	p.until("all are connected", func() bool { return p.Connections() == many })
	if each := (memory() - before) / many; each > idle {
		t.Errorf("a connection takes %d KiB, want at most %d", each>>10, idle>>10)
	} else {
		t.Logf("a connection takes %d KiB, both ends", each>>10)
	}
}

// quietly sends connect and nothing more.
func quietly(t *testing.T, c *protocol.Conn) {
	if _, err := c.Read(t.Context()); err != nil {
		return
	}
	hello := `{"type":"req","id":"1","method":"connect","params":{"minProtocol":4,"maxProtocol":4,"scopes":["operator.read"],"client":{"id":"gateway-client","version":"1","platform":"linux","mode":"backend"},"auth":{"token":"` + fixed + `"}}}`
	if c.Write(t.Context(), []byte(hello)) != nil {
		return
	}
	for {
		if _, err := c.Read(t.Context()); err != nil {
			return
		}
	}
}

// memory is what the process holds, with its stacks.
func memory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
