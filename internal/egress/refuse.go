package egress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/egress/clienthello"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/egress/splice"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
)

// The descriptions of TLS alerts (RFC 8446, section 6).
const (
	alertAccessDenied  = 49
	alertInternalError = 80
)

const (
	// refusalTimeout is how long a program whose connection is refused may take to
	// send its first message and to take the answer.
	refusalTimeout = 5 * time.Second
	// maxRefusedHead is the most of a refused HTTP request that is read.
	maxRefusedHead = 16 << 10
)

// refuse records the refusal and answers in the protocol that the program
// speaks; on a raw port that is not known. first was read from it already.
func (c *connection) refuse(first []byte, err error) {
	c.record(err)
	if errors.Is(err, errSilent) || c.decision.Action == rule.TCP {
		return
	}
	answerRefusal(c.client, first, alertAccessDenied, http.StatusForbidden, c.text("denied", err))
}

// fail answers that the server cannot be reached.
func (c *connection) fail(first []byte, err error) {
	c.server.o.Denied(c.exec, Denial{Name: c.name, Port: c.port, Reason: err.Error(), Hint: errhint.Of(err)})
	if c.decision.Action == rule.TCP {
		return
	}
	answerRefusal(c.client, first, alertInternalError, http.StatusBadGateway, c.text("failed", err))
}

// record writes the record of a refusal. The connection is refused whether that
// works or not.
func (c *connection) record(err error) { c.recordAs(c.event(audit.EgressDenied), err) }

func (c *connection) recordAs(e *audit.EgressEvent, err error) {
	e.Reason = err.Error()
	_ = c.server.o.Audit(e)
	c.server.o.Denied(c.exec, Denial{Name: c.name, Port: c.port, Reason: err.Error(), Hint: errhint.Of(err)})
}

// text is the line that a program is answered.
func (c *connection) text(verdict string, err error) string {
	text := "egress: " + net.JoinHostPort(c.name, strconv.Itoa(c.port)) + " " + verdict + ": " + err.Error()
	if hint := errhint.Of(err); hint != "" {
		text += "\nhint: " + hint
	}
	return text
}

// answerRefusal waits for the first message of a program and answers a TLS alert
// or a status of HTTP. Others see their connection closed.
func answerRefusal(client net.Conn, first []byte, alert byte, status int, text string) {
	if client.SetDeadline(time.Now().Add(refusalTimeout)) != nil {
		return
	}
	conn := outbound.Prefixed(client, first)
	var kind [1]byte
	if _, err := io.ReadFull(conn, kind[:]); err != nil {
		return
	}
	conn = outbound.Prefixed(conn, kind[:])
	switch {
	case kind[0] == recordHandshake:
		_, _, _ = clienthello.Read(conn)
		_, _ = client.Write([]byte{recordAlert, 3, 3, 0, 2, 2, alert})
	case kind[0] >= 'A' && kind[0] <= 'Z':
		_, _ = readHead(conn)
		_, _ = client.Write(httpRefusal(status, text))
	}
	splice.CloseWrite(client)
}

// The kinds of TLS records.
const (
	recordAlert     = 21
	recordHandshake = 22
)

// readHead reads the head of an HTTP request and returns its Host.
func readHead(r io.Reader) (host string, err error) {
	reader := bufio.NewReader(io.LimitReader(r, maxRefusedHead))
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil || len(bytes.TrimSpace(line)) == 0 {
			return host, err
		}
		if name, value, ok := strings.Cut(string(line), ":"); ok && strings.EqualFold(name, "host") {
			host = strings.TrimSpace(value)
		}
	}
}

func httpRefusal(status int, text string) []byte {
	return []byte("HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) + "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: " +
		strconv.Itoa(len(text)+1) + "\r\n\r\n" + text + "\n")
}
