package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// How large everything is, and what is claimed.
const (
	gatewayRounds    = 10   // of the same call, side by side
	gatewayWarm      = 64   // sessions before it, for warming up
	gatewaySessions  = 500  // that an agent works for at once
	gatewayTurns     = 2    // of each
	gatewayLinks     = 4    // connections that they share, each of which gets the events of all
	gatewayIdle      = 2000 // sessions that exist and nothing more
	gatewayIdleLinks = 5000 // connections that do nothing

	gatewayDelay       = 20  // ms from an event until it is written, p99, at most
	gatewayIdleKB      = 200 // KB of an idle session, at most
	gatewayIdleLinksMB = 400 // MB with all idle connections, at most

	gatewayPatience = 10 * time.Minute
)

// gatewayStage is a gateway in a process of its own.
type gatewayStage struct {
	options Options
	dir     string
	token   string
	url     string
	child   *exec.Cmd
	said    bytes.Buffer
}

// gatewayBench measures our gateway: beside the real OpenClaw's, with many
// sessions at once, and with many that rest.
func gatewayBench(ctx context.Context, o Options) (_ *Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, gatewayPatience)
	defer cancel()
	if err := roomForLinks(); err != nil {
		return nil, err
	}
	r := &Report{Bench: "gateway"}
	for _, part := range []func(context.Context, Options, *Report) error{besideOpenClaw, gatewayCrowd, gatewayRest} {
		if err := part(ctx, o, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// roomForLinks lets this process and its children have all connections open.
func roomForLinks() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	const needed = gatewayIdleLinks + 1000
	if limit.Max < needed {
		return fmt.Errorf("%d open files are needed, and %d are allowed (ulimit -n)", needed, limit.Max)
	}
	limit.Cur = max(limit.Cur, needed)
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
}

// startGateway starts a gateway whose agents ask a model at an address.
func startGateway(ctx context.Context, o Options, model string) (_ *gatewayStage, err error) {
	s := &gatewayStage{options: o, token: rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "atoll"); err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s.url = "ws://127.0.0.1:" + strconv.Itoa(port)
	file, err := s.configure(port, model)
	if err != nil {
		return nil, err
	}
	s.child = exec.CommandContext(ctx, o.Atoll, "gateway")
	s.child.Cancel = func() error { return s.child.Process.Signal(unix.SIGTERM) }
	s.child.WaitDelay = 30 * time.Second
	s.child.Env = []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH"), "ATOLL_STATE_DIR=" + filepath.Join(s.dir, "state"),
		"ATOLL_CONFIG=" + file, "ATOLL_GATEWAY_TOKEN=" + s.token}
	s.child.Stderr = &s.said
	if err := s.child.Start(); err != nil {
		s.child = nil
		return nil, err
	}
	return s, s.await(ctx)
}

// await waits until the gateway answers.
func (s *gatewayStage) await(ctx context.Context) error {
	c := s.client()
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := c.Hello(ctx); err != nil {
		return fmt.Errorf("the gateway does not answer: %w", err)
	}
	return nil
}

func (s *gatewayStage) configure(port int, model string) (string, error) {
	type object = map[string]any
	text, err := json.Marshal(object{
		"agents": object{"defaults": object{
			"workspace": filepath.Join(s.dir, "workspace"), "model": "p/m",
			"sandbox": object{"mode": "all", "backend": "linux", "docker": object{"containerPrefix": "bench-" + filepath.Base(s.dir) + "-"}},
		}},
		"gateway": object{"port": port},
		"models": object{"providers": object{"p": object{
			"baseUrl": model, "apiKey": "none", "api": "openai-completions", "models": []object{{"id": "m", "name": "m"}},
		}}},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, "atoll.json5")
	return path, errors.Join(os.Mkdir(filepath.Join(s.dir, "workspace"), 0o755), os.WriteFile(path, text, 0o600))
}

func (s *gatewayStage) client() *protocol.Client { return newGatewayClient(s.url, s.token) }

func newGatewayClient(url, token string) *protocol.Client {
	return protocol.NewClient(protocol.ClientOptions{
		URL: url, Name: "bench", Version: "1", Timeout: 2 * time.Minute, RetryMax: time.Second,
		Token: func(context.Context) (string, error) { return token, nil },
	})
}

// close ends the gateway, removes its sandboxes and forgets its directory.
func (s *gatewayStage) close() error {
	var err error
	if s.child != nil {
		_ = s.child.Process.Signal(unix.SIGTERM)
		if err = s.child.Wait(); err != nil {
			err = fmt.Errorf("the gateway ended with %w: %s", err, strings.TrimSpace(s.said.String()))
		}
		err = errors.Join(err, s.remove())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *gatewayStage) remove() error {
	cmd := exec.CommandContext(context.Background(), s.options.Atoll, "sandbox", "recreate", "--all", "--force")
	cmd.Env = s.child.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("remove the sandboxes: %w: %s", err, out)
	}
	return nil
}

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
