package sshserver

import (
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// forwardRequest is the payload of a direct-tcpip channel (RFC 4254, 7.2).
type forwardRequest struct {
	Host       string
	Port       uint32
	Origin     string
	OriginPort uint32
}

// forward joins a channel with a port of the sandbox's loopback interface.
func (c *conn) forward(nc ssh.NewChannel) {
	var q forwardRequest
	if ssh.Unmarshal(nc.ExtraData(), &q) != nil || q.Port == 0 || q.Port > 65535 {
		_ = nc.Reject(ssh.ConnectionFailed, "no port inside was named")
		return
	}
	if !isLoopback(q.Host) {
		_ = nc.Reject(ssh.Prohibited, "only localhost of the sandbox can be reached: it has no network")
		return
	}
	inside, err := c.Dial(c.ctx, int(q.Port))
	if err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, forwardError(err))
		return
	}
	defer inside.Close()
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	join(ch, inside)
}

// isLoopback reports whether host names the loopback interface.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func forwardError(err error) string {
	if errors.Is(err, ErrRefused) {
		return "nothing listens on this port of the sandbox"
	}
	return "the sandbox cannot be reached"
}

// join copies in both directions until both ends are done.
func join(ch ssh.Channel, inside net.Conn) {
	defer ch.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(inside, ch) // an error ends the copy; the other direction goes on
		closeWrite(inside)
	})
	wg.Go(func() {
		_, _ = io.Copy(ch, inside)
		_ = ch.CloseWrite()
	})
	wg.Wait()
}

// closeWrite ends the sending half of a connection, or all of it if it has no halves.
func closeWrite(nc net.Conn) {
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = nc.Close()
}
