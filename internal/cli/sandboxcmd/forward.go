package sandboxcmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/loopback"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// maxForwards bounds the ports of one command.
const maxForwards = 64

type forwardOptions struct {
	console.SubjectFlags
	asJSON bool
}

// NewForwardCommand returns the command `atoll forward`.
func NewForwardCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o forwardOptions
	cmd := &cobra.Command{
		Use:   "forward [flags] [SANDBOX] PORT[:HOSTPORT]…",
		Short: "Show ports of a sandbox on this machine's loopback interface",
		Long: `Show ports of a sandbox on this machine's loopback interface, until Ctrl-C: a
development server inside is then open at http://localhost:PORT, without a network.

SANDBOX is a name as ps shows it, the session, or the beginning of either. Without
it the sandbox is that of this directory, where it has one, else that of --agent and
--session. It must run; the server inside may be started later.

HOSTPORT is the port here if it is another; 0 takes a free one. Only programs of
this machine can connect. What they get comes from the sandbox: a browser sends
cookies of localhost to it, whatever the port.`,
		Example: `  atoll forward 5173
  atoll forward agent-main 3000:8000 5432
  atoll forward 8080:0 --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			_, _, err := readForwards(args)
			if err != nil {
				return console.Usage(cmd, err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			name, ports, err := readForwards(args)
			if err != nil {
				return err
			}
			if name != "" && o.SubjectFlags != (console.SubjectFlags{}) {
				return console.Usage(cmd, errhint.With(errors.New("SANDBOX says which one already"), "leave --agent, --session and --account out"))
			}
			return e.forward(cmd.Context(), &o, name, ports)
		},
	}
	o.Add(cmd)
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// forwarded is one port of a sandbox that is shown here.
type forwarded struct {
	Port    int    `json:"port"`    // inside
	Address string `json:"address"` // here
	host    int
	l       net.Listener
}

// readForwards takes the arguments of forward apart: a sandbox, or none, and ports.
func readForwards(args []string) (name string, ports []*forwarded, err error) {
	if len(args) > 0 && strings.Trim(args[0], "0123456789:") != "" {
		name, args = args[0], args[1:]
	}
	switch {
	case len(args) == 0:
		return "", nil, errhint.With(errors.New("no port was given"), "write the port inside, as in `atoll forward 5173`")
	case len(args) > maxForwards:
		return "", nil, fmt.Errorf("%d ports are over the limit of %d", len(args), maxForwards)
	}
	for _, word := range args {
		f, err := readForward(word)
		if err != nil {
			return "", nil, errhint.With(err, "write PORT or PORT:HOSTPORT, as in 5173 or 5173:15173")
		}
		ports = append(ports, f)
	}
	return name, ports, nil
}

func readForward(word string) (*forwarded, error) {
	inside, here, both := strings.Cut(word, ":")
	port, err := readPort(inside)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("%q is no port inside", word)
	}
	f := &forwarded{Port: port, host: port}
	if both {
		if f.host, err = readPort(here); err != nil {
			return nil, fmt.Errorf("%q has no port of this machine after the colon", word)
		}
	}
	return f, nil
}

func readPort(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err
}

// forward serves until the context ends.
func (e *env) forward(ctx context.Context, o *forwardOptions, name string, ports []*forwarded) error {
	h, err := e.attachForward(ctx, o, name)
	if err != nil {
		return err
	}
	defer h.Release()
	defer closeAll(ports)
	for _, f := range ports {
		if err := f.listen(ctx); err != nil {
			return err
		}
	}
	if err := e.sayForwards(o, h, ports); err != nil {
		return err
	}
	group, all := errgroup.WithContext(ctx)
	for _, f := range ports {
		group.Go(func() error { return loopback.Serve(all, f.l, e.dialInside(h, f)) })
	}
	return group.Wait()
}

// attachForward enters the sandbox that is meant.
func (e *env) attachForward(ctx context.Context, o *forwardOptions, name string) (*sandbox.Handle, error) {
	var handles []*sandbox.Handle
	var err error
	if name != "" {
		handles, err = e.attach(ctx, o.SubjectFlags, []string{name})
	} else {
		handles, err = e.attachHere(ctx, o.SubjectFlags)
	}
	if err == nil && len(handles) == 0 {
		err = sandbox.ErrNotRunning
	}
	if errors.Is(err, sandbox.ErrNotRunning) || errors.Is(err, sandbox.ErrNotFound) {
		err = errhint.With(err, "`atoll ps` shows what there is; start a server inside with `atoll shell -- …` or `atoll run -- …` and forward its port then")
	}
	if err != nil {
		return nil, err
	}
	releaseAll(handles[1:])
	return handles[0], nil
}

// attachHere enters the sandbox of the working directory, where it has one and the flags
// name no other, else that of the flags.
func (e *env) attachHere(ctx context.Context, flags console.SubjectFlags) ([]*sandbox.Handle, error) {
	a, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	who := flags.Who()
	if flags == (console.SubjectFlags{}) {
		d, err := directoryHere(a)
		if err != nil {
			return nil, err
		}
		if d != nil {
			who = a.DirectorySubject(d, provide.DirectoryOptions{})
		}
	}
	return a.Attach(ctx, who)
}

// directoryHere returns the recorded directory that the working directory belongs to;
// nil if there is none.
func directoryHere(a *app.App) (*directory.Directory, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	d, err := a.Directory(cwd)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // no directory that can have a sandbox
	}
	if d, err = a.Directories().Find(d); errors.Is(err, directory.ErrNone) {
		return nil, nil //nolint:nilnil // it has no sandbox
	}
	return d, err
}

// listen opens the port of this machine.
func (f *forwarded) listen(ctx context.Context) (err error) {
	f.l, err = (&net.ListenConfig{}).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", f.host))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return errhint.With(fmt.Errorf("port %d of this machine is taken", f.host), fmt.Sprintf("take a free one with `atoll forward %d:0`", f.Port))
	case errors.Is(err, syscall.EACCES):
		return errhint.With(fmt.Errorf("port %d of this machine: %w", f.host, err), fmt.Sprintf("choose one above 1023, as in `atoll forward %d:%d`", f.Port, 10000+f.host))
	case err != nil:
		return err
	}
	f.Address = f.l.Addr().String()
	return nil
}

func closeAll(ports []*forwarded) {
	for _, f := range ports {
		if f.l != nil {
			f.l.Close()
		}
	}
}

// sayForwards says where the ports are, once all are open.
func (e *env) sayForwards(o *forwardOptions, h *sandbox.Handle, ports []*forwarded) error {
	if o.asJSON {
		return e.PrintJSON(map[string]any{"sandbox": h.Name, "ports": ports})
	}
	for _, f := range ports {
		fmt.Fprintf(e.Out, "%s → port %d of %s\n", f.Address, f.Port, h.Name)
	}
	fmt.Fprintln(e.Err, "until Ctrl-C")
	return e.Out.Err
}

// dialInside connects to the port inside, and says once that nothing listens there.
func (e *env) dialInside(h *sandbox.Handle, f *forwarded) loopback.Dial {
	var said sync.Once
	return func(ctx context.Context, _ net.Conn) (net.Conn, error) {
		conn, err := h.Machine.Dial(ctx, "tcp", f.Port)
		if errors.Is(err, machine.ErrRefused) {
			said.Do(func() { e.Notice(fmt.Sprintf("nothing listens on port %d of the sandbox yet", f.Port)) })
		} else if err != nil && ctx.Err() == nil {
			e.Notice(err.Error())
		}
		return conn, err
	}
}
