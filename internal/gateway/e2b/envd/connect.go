package envd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/membudget"
)

// The media types of Connect in JSON, https://connectrpc.com/docs/protocol: of a call with
// one message each way, and of streams.
const (
	unaryType  = "application/json"
	streamType = "application/connect+json"
)

// The parts of an envelope of a stream.
const (
	envelopeHead   = 5 // flags and length
	flagCompressed = 1
	flagEnd        = 2
)

// The bounds of a stream.
const (
	sendTime         = 30 * time.Second // until a reader has taken a message
	defaultKeepalive = 50 * time.Second
	maxLife          = 30 * 24 * time.Hour
)

// rpc is one call of a procedure.
type rpc struct {
	*box
	w        http.ResponseWriter
	r        *http.Request
	isStream bool
	share    membudget.Share
	life     time.Duration // that the client gives the call; 0 is no bound

	mu   sync.Mutex // of what is sent
	sent bool
}

// procedure serves a procedure.
func (s *Server) procedure(serve func(*rpc) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &rpc{w: w, r: r}
		if err := c.open(); err != nil {
			w.Header().Set("Accept-Post", unaryType+", "+streamType)
			refuse(w, http.StatusUnsupportedMediaType, err.Error())
			return
		}
		var err error
		if c.box, err = s.box(r); err == nil {
			c.share = membudget.Share{Budget: s.Inbound, Holder: c.ID, MinBuffer: 16 << 10, MaxBuffer: MaxMessage + 1}
			err = serve(c)
			c.share.Free()
		}
		c.end(err)
	}
}

// open reads how the client speaks.
func (c *rpc) open() error {
	kind, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	c.isStream = kind == streamType
	if kind != unaryType && !c.isStream {
		return errors.New("only Connect in JSON is spoken here: " + unaryType + " or " + streamType)
	}
	if ms, err := strconv.ParseInt(c.r.Header.Get("Connect-Timeout-Ms"), 10, 64); err == nil && ms > 0 {
		c.life = min(time.Duration(min(ms, maxLife.Milliseconds()))*time.Millisecond, maxLife)
	}
	return nil
}

// read decodes the message of a call.
func (c *rpc) read(v any) error {
	var text []byte
	var err error
	if c.isStream {
		text, err = c.readEnvelope()
	} else {
		text, err = membudget.ReadAll(http.MaxBytesReader(c.w, c.r.Body, MaxMessage), &c.share)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v, json.RejectUnknownMembers(true)); err != nil {
		return badMessage(err)
	}
	return nil
}

// badMessage names the member that is wrong.
func badMessage(err error) error {
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok && wrong.JSONPointer != "" {
		return &fault{invalidArgument, string(wrong.JSONPointer) + " is not known, or has another type"}
	}
	return &fault{invalidArgument, "the message is not JSON"}
}

// readEnvelope reads the next message of the client's stream, io.EOF after the last.
func (c *rpc) readEnvelope() ([]byte, error) {
	var head [envelopeHead]byte
	if _, err := io.ReadFull(c.r.Body, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	switch {
	case head[0]&flagCompressed != 0:
		return nil, &fault{unimplemented, "compressed messages are not read"}
	case head[0]&flagEnd != 0:
		return nil, io.EOF
	case size > MaxMessage:
		return nil, &fault{resourceExhausted, fmt.Sprintf("a message has more than %d bytes", MaxMessage)}
	}
	text, err := membudget.ReadAll(io.LimitReader(c.r.Body, int64(size)), &c.share)
	if err == nil && len(text) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	return text, err
}

// answer sends the answer of a call with one.
func (c *rpc) answer(v any) error {
	if c.isStream {
		return c.send(v)
	}
	c.sent = true
	c.w.Header().Set("Content-Type", unaryType)
	c.paceWrite()
	return json.MarshalWrite(c.w, v, jsontext.AllowInvalidUTF8(true))
}

func (c *rpc) paceWrite() {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(sendTime)) // a writer without deadlines is not bounded
}

// send sends a message of a stream. A reader that takes nothing for sendTime is left.
func (c *rpc) send(v any) error {
	text, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	return c.sendEnvelope(0, text)
}

func (c *rpc) sendEnvelope(flags byte, text []byte) error {
	var b bytes.Buffer
	b.WriteByte(flags)
	_ = binary.Write(&b, binary.BigEndian, uint32(len(text))) // a buffer takes all
	b.Write(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.sent {
		c.w.Header().Set("Content-Type", streamType)
		c.sent = true
	}
	c.paceWrite()
	if _, err := c.w.Write(b.Bytes()); err != nil {
		return err
	}
	return http.NewResponseController(c.w).Flush()
}

// end ends the answer of a call.
func (c *rpc) end(err error) {
	var f *fault
	if err != nil {
		f = faultOf(c.box, err)
		c.logFault(f, err)
	}
	switch {
	case !c.isStream && f != nil && !c.sent:
		answerFault(c.w, f)
	case !c.isStream:
	case f == nil:
		_ = c.sendEnvelope(flagEnd, []byte("{}")) // the client may be gone, as below
	default:
		text, _ := json.Marshal(map[string]*fault{"error": f}, jsontext.AllowInvalidUTF8(true)) // two texts
		_ = c.sendEnvelope(flagEnd, text)
	}
}

func (c *rpc) logFault(f *fault, err error) {
	if f.Code == internal && c.box != nil {
		c.server.Logger.ErrorContext(c.r.Context(), "a call of E2B's surface failed", "path", c.r.URL.Path, "error", err)
	}
}

// keepAlive sends a message as often as the client wants, until stop is called.
func (c *rpc) keepAlive(message any) (stop func()) {
	every := defaultKeepalive
	if n, err := strconv.Atoi(c.r.Header.Get("Keepalive-Ping-Interval")); err == nil && n > 0 {
		every = min(max(time.Duration(n)*time.Second, time.Second), defaultKeepalive)
	}
	done := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_ = c.send(message) // the next message fails, too
			}
		}
	})
	return func() { close(done); beats.Wait() }
}
