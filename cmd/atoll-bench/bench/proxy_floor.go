package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
)

// ProxyFloor is the least that can stand between a caller and a model: a process
// that passes bytes on, and looks at none of them. What a proxy adds beyond it is
// the proxy's own.
type ProxyFloor struct {
	Listen, Target string // sockets, if they begin with a slash, or addresses
}

// Serve says where it listens, and passes on until the end of its input.
func (f *ProxyFloor) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	network := "tcp"
	if strings.HasPrefix(f.Listen, "/") {
		network = "unix"
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, network, f.Listen)
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	go f.accept(ctx, l)
	_, err = io.Copy(io.Discard, in)
	return err
}

func (f *ProxyFloor) accept(ctx context.Context, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go f.pass(ctx, conn)
	}
}

// pass joins a caller to the target.
func (f *ProxyFloor) pass(ctx context.Context, caller net.Conn) {
	defer caller.Close()
	target, err := dial(ctx, f.Target)
	if err != nil {
		return
	}
	defer target.Close()
	var up sync.WaitGroup
	up.Go(func() { passBytes(target, caller); _ = target.Close() })
	passBytes(caller, target)
	_ = caller.Close()
	up.Wait()
}

// passBytes reads and writes: one call each for a piece, which is less than what
// it costs to have the kernel move so little through a pipe.
func passBytes(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// startRelay starts a floor in a process of its own.
func startRelay(ctx context.Context, o Options, listen, target string) (_ *peer, err error) {
	p := &peer{name: "bare relay", cmd: exec.CommandContext(ctx, o.Self, "proxy-floor", listen, target)}
	p.cmd.Stderr = o.Progress
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.stdout = bufio.NewReader(out)
	address, err := p.stdout.ReadString('\n')
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("the bare relay does not serve: %w", err)
	}
	p.socket = strings.TrimSpace(address)
	return p, nil
}
