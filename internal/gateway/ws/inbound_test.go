package ws_test

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/ws"
	"github.com/atoll-run/atoll/internal/membudget"
)

const mib = 1 << 20

// raw is a client that writes frames by hand, also those that never end.
type raw struct {
	net.Conn
	r *bufio.Reader
}

// rawClient connects by hand and says hello.
func (p *testGateway) rawClient(token string) *raw {
	p.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "ws://"))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * testTimeout))
	c := &raw{conn, bufio.NewReader(conn)}
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+rand.Text()[:22]+"==\r\n\r\n")
	if _, err := http.ReadResponse(c.r, nil); err != nil {
		p.Fatal(err)
	}
	hello, _ := json.Marshal(map[string]any{"type": "req", "id": "1", "method": "connect", "params": offer(protocol.V4, token)})
	c.begin(len(hello))
	_, _ = c.Write(hello)
	for !strings.Contains(string(c.frame(p)), `"hello-ok"`) {
		continue
	}
	return c
}

// begin writes the header of a text frame; the mask is zero.
func (c *raw) begin(size int) {
	header := make([]byte, 14)
	header[0], header[1] = 0x81, 0x80|127
	binary.BigEndian.PutUint64(header[2:], uint64(size))
	_, _ = c.Write(header)
}

// frame reads one frame.
func (c *raw) frame(p *testGateway) []byte {
	p.Helper()
	header := make([]byte, 2)
	if _, err := io.ReadFull(c.r, header); err != nil {
		p.Fatal(err)
	}
	size := int(header[1])
	if more := map[int]int{126: 2, 127: 8}[size]; more > 0 {
		long := make([]byte, 8)
		_, _ = io.ReadFull(c.r, long[8-more:])
		size = int(binary.BigEndian.Uint64(long))
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(c.r, data); err != nil {
		p.Fatal(err)
	}
	if header[0] == 0x88 {
		return fmt.Appendf(nil, "close %d %s", binary.BigEndian.Uint16(data), data[2:])
	}
	return data
}

// closed reads until the connection is closed.
func (c *raw) closed(p *testGateway) string {
	p.Helper()
	for {
		if text := string(c.frame(p)); strings.HasPrefix(text, "close ") {
			return text
		}
	}
}

// Messages that never end hold at most what their token may hold; those of other
// tokens are answered.
func TestUnfinishedMessagesAreBounded(t *testing.T) {
	p := gateway(t, ws.Limits{})
	reader, other := p.token(access.Read, "alice"), p.token(access.Read, "bob")
	sent := make([]byte, 23*mib)
	before := liveBytes()
	all := make([]*raw, 0, 32)
	for range 32 {
		c := p.rawClient(reader)
		c.begin(24 * mib)
		all = append(all, c)
	}
	for _, c := range all {
		go func() { _, _ = c.Write(sent) }()
	}
	p.until("no connection is given up", func() bool {
		return p.counted(`atoll_gateway_clients_dropped_total{reason="large"}`) >= "1"
	})
	// A buffer that grows is there twice until it is copied, so it takes a moment.
	p.until("32 messages of one token take more than 160 MiB", func() bool { return liveBytes()-before <= 160*mib })
	if used := p.Inbound.Used(); used > access.DefaultInboundPerToken {
		t.Errorf("%d bytes are held by one token", used)
	}
	e := p.connect(protocol.V4, other)
	e.must("sessions.list", map[string]any{"search": strings.Repeat("x", mib)})
}

// liveBytes returns how many bytes are alive.
func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A client whose message finds no memory gets an error; small messages need none.
func TestMessageWithoutMemory(t *testing.T) {
	p := gateway(t, ws.Limits{})
	p.Inbound = membudget.New(mib, mib)
	e := p.connect(protocol.V4, fixed)
	e.must("sessions.list", map[string]any{})
	e.say(append([]byte(`{"type":"req","id":"9","method":"sessions.list","params":{"search":"`), make([]byte, 2*mib)...))
	if code, reason := e.closed(); code != protocol.CloseTryLater || reason != membudget.ErrTotal.Error() {
		t.Errorf("closed with %d %q", code, reason)
	}
	p.until("memory is held", func() bool { return p.Inbound.Used() == 0 })
}

// A message that trickles in is cut, and gives back what it held.
func TestTricklingMessage(t *testing.T) {
	p := gateway(t, ws.Limits{Pace: membudget.Pace{Grace: 300 * time.Millisecond, Rate: 64 * mib}, Grace: 100 * time.Millisecond})
	c := p.rawClient(fixed)
	c.begin(24 * mib)
	_, _ = c.Write(make([]byte, mib))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := c.Write([]byte("x")); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if text := c.closed(p); text != "close 1008 the message arrives too slowly" {
		t.Error(text)
	}
	<-done
	p.until("memory is held", func() bool { return p.Inbound.Used() == 0 })
}

// A method that waits keeps its parameters, so that they have to be short.
func TestWaitingMethodsTakeLittle(t *testing.T) {
	p := gateway(t, ws.Limits{})
	e := p.connect(protocol.V4, fixed)
	if f := e.call("agent.wait", map[string]any{"runId": strings.Repeat("x", 100<<10)}); f.Error == nil || f.Error.Code != protocol.CodeInvalidRequest {
		t.Errorf("%v", f)
	}
}
