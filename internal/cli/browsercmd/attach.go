package browsercmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/browsers/localport"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// attachOptions are the flags of `atoll browser attach`.
type attachOptions struct {
	port   uint16
	asJSON bool
}

// attached is what `atoll browser attach` prints.
type attached struct {
	Browser string `json:"browser"`
	URL     string `json:"url"`
}

func newAttachCommand(e *env) *cobra.Command {
	var o attachOptions
	cmd := &cobra.Command{
		Use:   "attach BROWSER",
		Short: "Open a port of this machine by which programs drive a browser",
		Long: `Open a port of this machine's loopback interface that speaks the DevTools protocol of a
browser, until Ctrl-C: Playwright, Puppeteer and others connect to it as they would to a
Chromium of this machine. It takes sandbox.browser.cdp: "operator".

Programs of other users and web pages are refused. What programs say is read message by
message, as it is at the gateway: they cannot end the browser, nor see what belongs to
another program.`,
		Example: `  atoll browser attach agent-main
  atoll browser attach agent-main --port 9222`,
		Args: console.ExactlyOne("BROWSER"),
		RunE: func(cmd *cobra.Command, args []string) error { return e.attach(cmd.Context(), args[0], o) },
	}
	cmd.Flags().Uint16Var(&o.port, "port", 0, "the `port`; 0 takes a free one")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// attach serves the port until the context ends.
func (e *env) attach(ctx context.Context, word string, o attachOptions) error {
	b, found, err := e.find(ctx, word)
	if err != nil {
		return err
	}
	served := b.Browser(found.Name)
	if _, err := served.Version(ctx); err != nil { // it may not be attached to, or does not run
		return err
	}
	l, err := listen(ctx, o.port)
	if err != nil {
		return err
	}
	defer l.Close()
	closed, err := e.openEndpoint(ctx, found.Name, l)
	if err != nil {
		return err
	}
	defer closed()
	if err := e.sayAttached(&attached{found.Name, "http://" + l.Addr().String()}, o.asJSON); err != nil {
		return err
	}
	return localport.Serve(ctx, l, served)
}

func listen(ctx context.Context, port uint16) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, errhint.With(fmt.Errorf("port %d of this machine is taken", port), "take a free one: leave --port out")
	}
	return l, err
}

// openEndpoint records the port for `atoll sandbox list --browser`.
func (e *env) openEndpoint(ctx context.Context, name string, l net.Listener) (closed func(), err error) {
	a, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return func() {}, nil
	}
	return a.OpenEndpoint(ctx, name, sandbox.EndpointCDP, at.Port)
}

func (e *env) sayAttached(a *attached, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(a)
	}
	fmt.Fprintln(e.Out, a.URL)
	fmt.Fprintln(e.Err, "until Ctrl-C")
	return e.Out.Err
}
