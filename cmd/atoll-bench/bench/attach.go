package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/wire"
)

// guestInside is the guest's program in a container, and the socket on which it
// listens there.
const (
	guestInside  = "/.atoll/guest"
	socketInside = "/.atoll/wire/guest.sock"
)

// overSocket dials the guest on the socket that it shares with the host.
func (s *stage) overSocket(ctx context.Context) (net.Conn, error) {
	found, err := filepath.Glob(filepath.Join(s.state, "wire", "*", "guest.sock"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%d sockets of guests in %s, want one", len(found), s.state)
	}
	return wire.DialSocket(ctx, found[0])
}

// overAttach dials the guest through an exec of the engine, as on an engine
// that shares no sockets with the host.
func (s *stage) overAttach(ctx context.Context) (net.Conn, error) {
	return s.attach(ctx, "", guestInside, "pass", "--socket", socketInside)
}

// attach starts a program in the container by an exec of the engine: the
// connection is its standard input and output.
func (s *stage) attach(ctx context.Context, dir string, argv ...string) (net.Conn, error) {
	var made struct {
		ID string `json:"Id"`
	}
	create := map[string]any{
		"AttachStdin": true, "AttachStdout": true, "AttachStderr": true,
		"WorkingDir": dir, "Cmd": argv,
	}
	conn, _, err := s.engineCall(ctx, "/containers/"+s.session.Name+"/exec", create, &made)
	if err != nil {
		return nil, err
	}
	conn.Close()
	conn, reader, err := s.engineCall(ctx, "/exec/"+made.ID+"/start", map[string]any{"Detach": false, "Tty": false}, nil)
	if err != nil {
		return nil, err
	}
	return &pieces{Conn: conn, from: reader}, nil
}

// engineCall posts a request on a connection of its own, and leaves that open:
// an attached exec goes on over it.
func (s *stage) engineCall(ctx context.Context, path string, body, answer any) (_ net.Conn, _ *bufio.Reader, err error) {
	socket := strings.TrimPrefix(s.options.Getenv("DOCKER_HOST"), "unix://")
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	payload, err := json.Marshal(body)
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine"+path, bytes.NewReader(payload))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if answer == nil {
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", "tcp")
	}
	if err := request.Write(conn); err != nil {
		return nil, nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, nil, err
	}
	if response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusSwitchingProtocols {
		return nil, nil, fmt.Errorf("the engine answers %s with %s", path, response.Status)
	}
	if answer == nil {
		return conn, reader, nil // what follows is the exec's
	}
	defer response.Body.Close()
	return conn, reader, json.UnmarshalRead(response.Body, answer)
}

// pieces is an attached exec as a connection: the engine puts a header before
// every piece of output.
type pieces struct {
	net.Conn
	from io.Reader
	left uint32
}

// Read implements net.Conn.
func (p *pieces) Read(b []byte) (int, error) {
	for p.left == 0 {
		var header [8]byte // stream, three zeros, length
		if _, err := io.ReadFull(p.from, header[:]); err != nil {
			return 0, err
		}
		p.left = binary.BigEndian.Uint32(header[4:])
		if header[0] != 1 {
			return 0, fmt.Errorf("the program in the container failed: %d bytes on stream %d", p.left, header[0])
		}
	}
	n, err := p.from.Read(b[:min(len(b), int(p.left))])
	p.left -= uint32(n)
	return n, err
}
