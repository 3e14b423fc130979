package egressstage

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Caller is a process in the sandbox that makes requests one after the other.
type Caller struct {
	URL   string
	Count int
	Fresh bool // each on a connection of its own, otherwise all on one
}

// Call makes the requests and returns how long each took, to its last byte. The name is
// looked up once, before.
func (c *Caller) Call(ctx context.Context) ([]time.Duration, error) {
	transport, err := c.transport(ctx)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var samples []time.Duration
	for range c.Count + 1 {
		start := time.Now()
		if err := get(ctx, client, c.URL); err != nil {
			return nil, err
		}
		samples = append(samples, time.Since(start))
	}
	return samples[1:], nil // the first is for warming up
}

func (c *Caller) transport(ctx context.Context) (*http.Transport, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return nil, err
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, request.URL.Hostname())
	if err != nil {
		return nil, err
	}
	port := request.URL.Port()
	if port == "" {
		port = "443"
	}
	return &http.Transport{
		DisableKeepAlives: c.Fresh, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the server is this measurement's own
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(addresses[0], port))
		},
	}, nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", url, answer.StatusCode)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
