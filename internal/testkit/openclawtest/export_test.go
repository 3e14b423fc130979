package openclawtest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Lines are what the gateway has said so far.
func (g *Gateway) Lines() []string {
	lines, _ := g.said()
	return lines
}

func (g *Gateway) said() (lines []string, more <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append(lines, g.lines...), g.more
}

// Await waits for a line that holds a text.
func (g *Gateway) Await(ctx context.Context, text string) (string, error) {
	for {
		lines, more := g.said()
		for _, line := range lines {
			if strings.Contains(line, text) {
				return line, nil
			}
		}
		select {
		case <-more:
		case <-g.ended:
			return "", fmt.Errorf("openclaw gateway ended before it said %q:\n%s", text, tail(strings.Join(g.Lines(), "\n")))
		case <-ctx.Done():
			return "", errors.Join(context.Cause(ctx), fmt.Errorf("openclaw gateway did not say %q:\n%s", text, tail(strings.Join(lines, "\n"))))
		}
	}
}

// Command is one openclaw command line, for those who start it themselves.
func (p *Peer) Command(ctx context.Context, h *Home, args ...string) *exec.Cmd {
	return p.command(ctx, h, args...)
}
