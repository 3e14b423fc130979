package browser

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/browser/devtools"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
)

const (
	// controlPort is the port of the DevTools protocol on the sandbox's loopback interface.
	controlPort = 9222
	// startTimeout is how long a browser may take until it answers.
	startTimeout = 30 * time.Second
	// maxVersion bounds the answer that names the browser's WebSocket.
	maxVersion = 64 << 10
	// endGrace is how long a browser may take to end by itself.
	endGrace = 2 * time.Second
)

// ErrNoProgram is returned where the sandbox has no Chromium.
var ErrNoProgram = errhint.With(errors.New("the browser's sandbox has no chromium"),
	"build its image: `atoll images build browser`; or install chromium-headless-shell on this machine")

// Options say how a browser is started.
type Options struct {
	Grant string   // the id of the open grant whose egress it has; "" is none
	Env   []string // NAME=value
	// LoadTimeout is how long a page may take to load; what is there then is used.
	LoadTimeout time.Duration // 0: DefaultLoadTimeout
}

// DefaultLoadTimeout is the LoadTimeout where none is set.
const DefaultLoadTimeout = 30 * time.Second

// Browser is a running browser. Close it.
type Browser struct {
	machine     *machine.Machine
	process     string
	conn        *devtools.Conn
	loadTimeout time.Duration
}

// Start starts a browser in its sandbox and waits until it answers.
func Start(ctx context.Context, m *machine.Machine, o Options) (_ *Browser, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	program, err := find(ctx, m)
	if err != nil {
		return nil, err
	}
	b := &Browser{machine: m, loadTimeout: cmp.Or(o.LoadTimeout, DefaultLoadTimeout)}
	b.process, err = m.Start(ctx, &machine.Command{Argv: append([]string{program}, flags()...), Env: append(o.Env, "HOME=/tmp"), Grant: o.Grant})
	if err != nil {
		return nil, err
	}
	if err := b.connect(ctx); err != nil {
		return nil, errors.Join(b.explain(err), b.Close())
	}
	return b, nil
}

// find returns the path of the program inside.
func find(ctx context.Context, m *machine.Machine) (string, error) {
	var out bytes.Buffer
	const search = "for p in chromium-headless-shell chromium; do test -x /usr/lib/chromium/$p && echo /usr/lib/chromium/$p && exit; done; command -v chromium-headless-shell || command -v chromium"
	result, err := m.Exec(ctx, &machine.Command{Argv: []string{"/bin/sh", "-c", search}, Stdout: &out, OutputLimit: 4096})
	if err != nil {
		return "", err
	}
	program, _, _ := strings.Cut(out.String(), "\n")
	if result.ExitCode != 0 || program == "" {
		return "", ErrNoProgram
	}
	return program, nil
}

// connect waits until the browser answers and connects to it.
func (b *Browser) connect(ctx context.Context) error {
	for {
		address, err := b.socket(ctx)
		if err == nil {
			b.conn, err = devtools.Dial(ctx, address, b.dial)
			return err
		}
		if p, gone := b.machine.Process(ctx, b.process); gone == nil && p.Result != nil {
			return errors.New("the browser ended at once")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the browser does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (b *Browser) dial(ctx context.Context) (net.Conn, error) {
	return b.machine.Dial(ctx, "tcp", controlPort)
}

// socket returns the address of the browser's WebSocket.
func (b *Browser) socket(ctx context.Context) (string, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return b.dial(ctx) }, DisableKeepAlives: true}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(controlPort)+"/json/version", nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(q)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var version struct {
		Socket string `json:"webSocketDebuggerUrl"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxVersion)).Decode(&version); err != nil {
		return "", err
	}
	found, err := url.Parse(version.Socket)
	if err != nil || found.Scheme != "ws" {
		return "", errors.New("the browser names no WebSocket")
	}
	return "ws://127.0.0.1:" + strconv.Itoa(controlPort) + found.Path, nil
}

// explain adds the end of what the browser printed to an error.
func (b *Browser) explain(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), endGrace)
	defer cancel()
	logs, failed := b.machine.Logs(ctx, b.process, machine.LogRequest{})
	if failed != nil {
		return err
	}
	var all bytes.Buffer
	for _, chunk := range logs.Stderr.Chunks {
		all.Write(chunk.Bytes)
	}
	text := strings.TrimSpace(all.String())
	if strings.Contains(text, "No usable sandbox") || strings.Contains(text, "Failed to move to new namespace") {
		return errhint.With(fmt.Errorf("%w: user namespaces are barred in the browser's sandbox, and without them Chromium has no sandbox of its own", err),
			"allow them on this machine: sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0")
	}
	return fmt.Errorf("%w; it printed: %.500q", err, lastLine(text))
}

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

// Close ends the browser with all its processes.
func (b *Browser) Close() error {
	if b.conn != nil {
		_ = b.conn.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*endGrace)
	defer cancel()
	return b.machine.End(ctx, b.process, endGrace)
}
