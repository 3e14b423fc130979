package browserstage

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"net"
	"strconv"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/nodechild"
	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/loopback"
)

//go:embed playwright.mjs
var playwrightProgram []byte

// playwright is a process that drives browsers with Playwright.
type playwright struct{ *nodechild.Child }

// startPlaywright connects it to browsers, by their ports.
func startPlaywright(ctx context.Context, ports map[string]int) (*playwright, error) {
	list, err := json.Marshal(ports)
	if err != nil {
		return nil, err
	}
	child, err := nodechild.Start(ctx, "browsers", playwrightProgram, string(list), pageAddress)
	if err != nil {
		return nil, err
	}
	if line, err := child.Hear(); err != nil || line != "ready" {
		return nil, errors.Join(err, errors.New("the process with Playwright did not begin"), child.Close())
	}
	return &playwright{child}, nil
}

// do has it do something and returns the milliseconds that it took.
func (p *playwright) do(action, browser string) (float64, error) {
	if err := p.Tell(action + " " + browser); err != nil {
		return 0, err
	}
	line, err := p.Hear()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(line, 64)
}

// forward has the control port of a browser in a sandbox reached on a port of the host.
func forward(ctx context.Context, b *browsers.Started) (port int, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	go func() {
		_ = loopback.Serve(ctx, l, func(ctx context.Context, _ net.Conn) (net.Conn, error) { return b.Dial(ctx) })
	}()
	return l.Addr().(*net.TCPAddr).Port, nil
}
