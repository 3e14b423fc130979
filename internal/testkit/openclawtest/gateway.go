package openclawtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// Gateway is an `openclaw gateway` that runs.
type Gateway struct {
	cmd  *exec.Cmd
	stop context.CancelFunc

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced when a line comes
	ended chan struct{}
}

// StartGateway starts the gateway of a home. It ends with Stop, or with ctx.
func (p *Peer) StartGateway(ctx context.Context, h *Home) (*Gateway, error) {
	ctx, stop := context.WithCancel(ctx)
	g := &Gateway{cmd: p.command(ctx, h, "gateway", "run"), stop: stop, more: make(chan struct{}), ended: make(chan struct{})}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it starts itself a second time
	read, write := io.Pipe()
	g.cmd.Stdout, g.cmd.Stderr = write, write
	if err := g.cmd.Start(); err != nil {
		stop()
		return nil, fmt.Errorf("openclaw gateway: %w", err)
	}
	go g.collect(read)
	go func() {
		err := g.cmd.Wait()
		_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) // whatever is left; mostly nothing
		_ = write.CloseWithError(err)                         // never fails
	}()
	return g, nil
}

func (g *Gateway) collect(output io.Reader) {
	defer close(g.ended)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		g.mu.Lock()
		g.lines = append(g.lines, lines.Text())
		close(g.more)
		g.more = make(chan struct{})
		g.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, output) // a line too long must not stop the gateway
}

// Stop ends the gateway and waits until it has.
func (g *Gateway) Stop() {
	g.stop()
	<-g.ended
}

// PID is the gateway's process.
func (g *Gateway) PID() int { return g.cmd.Process.Pid }
