package outbound

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"

	"github.com/atoll-run/atoll/internal/errhint"
)

// proxyPorts are the ports of proxies whose address names none.
var proxyPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// dialProxy connects to "host:port" through a proxy, which is sent the name as
// it is. No error quotes the password of the proxy.
func (h *Host) dialProxy(ctx context.Context, through *url.URL, address string) (net.Conn, error) {
	conn, err := h.tunnel(ctx, through, address)
	if err != nil {
		return nil, fmt.Errorf("proxy %s://%s: %w", through.Scheme, through.Host, err)
	}
	return conn, nil
}

func (h *Host) tunnel(ctx context.Context, through *url.URL, address string) (net.Conn, error) {
	server := net.JoinHostPort(through.Hostname(), cmp.Or(through.Port(), proxyPorts[through.Scheme]))
	conn, err := new(Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	var open net.Conn
	switch through.Scheme {
	case "socks5", "socks5h":
		open, err = requestSOCKS(ctx, conn, through.User, address)
	case "https":
		conn = tls.Client(conn, &tls.Config{ServerName: through.Hostname(), RootCAs: h.roots, MinVersion: tls.VersionTLS12})
		fallthrough
	default:
		open, err = requestTunnel(conn, through.User, address)
	}
	if err != nil {
		_ = conn.Close()
		return nil, cmp.Or(ctx.Err(), err)
	}
	return open, nil
}

// requestSOCKS has a SOCKS5 proxy connect to an address.
func requestSOCKS(ctx context.Context, conn net.Conn, user *url.Userinfo, address string) (net.Conn, error) {
	var auth *proxy.Auth
	if user != nil {
		password, _ := user.Password()
		auth = &proxy.Auth{User: user.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", "", auth, nil)
	if err != nil {
		return nil, err
	}
	on, ok := dialer.(interface {
		DialWithConn(ctx context.Context, conn net.Conn, network, address string) (net.Addr, error)
	})
	if !ok {
		return nil, errors.New("SOCKS5 is not supported")
	}
	_, err = on.DialWithConn(ctx, conn, "tcp", address)
	return conn, err
}

// requestTunnel has an HTTP proxy connect to an address.
func requestTunnel(conn net.Conn, user *url.Userinfo, address string) (net.Conn, error) {
	head := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n"
	if user != nil {
		password, _ := user.Password()
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(io.LimitReader(conn, MaxResponseHeader))
	answer, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, errors.New("its answer to CONNECT cannot be read")
	}
	defer answer.Body.Close() //nolint:errcheck // an answer to CONNECT has none
	if err := tunnelRefusal(answer.StatusCode); err != nil {
		return nil, err
	}
	return withBuffered(conn, reader), nil
}

// tunnelRefusal returns the error for an answer to CONNECT that is not 200.
func tunnelRefusal(status int) error {
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return errhint.With(errors.New("it wants a name and a password (407)"), "write them into the proxy's address: http://name:password@host:port")
	}
	return fmt.Errorf("it answers CONNECT with status %d", status)
}

// withBuffered returns the connection with what was read of the tunnel already
// in front.
func withBuffered(conn net.Conn, reader *bufio.Reader) net.Conn {
	first := make([]byte, reader.Buffered())
	_, _ = io.ReadFull(reader, first)
	return Prefixed(conn, first)
}
