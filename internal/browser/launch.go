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

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"

	"github.com/atoll-run/atoll/internal/browser/devtools"
	"github.com/atoll-run/atoll/internal/config/browserkeys"
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
	// answerTimeout is how long a running browser may take to answer.
	answerTimeout = 5 * time.Second
	// endGrace is how long a browser may take to end by itself.
	endGrace = 2 * time.Second
)

// ErrNoProgram is returned where the sandbox has no Chromium.
var ErrNoProgram = errhint.With(errors.New("the browser's sandbox has no chromium"),
	"build its image: `atoll images build browser`; or install chromium-headless-shell on this machine")

// ErrNamespaces is returned where Chromium cannot make its own sandbox.
var ErrNamespaces = errhint.With(errors.New("user namespaces are barred in the browser's sandbox, and without them Chromium has no sandbox of its own"),
	"allow them on this machine: sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0; or do without the second wall: sandbox.browser.dangerouslyNoSandbox: true")

// Options say how a browser is started.
type Options struct {
	Grant string   // the id of the open grant whose egress it has; "" is none
	Env   []string // NAME=value
	// Downloads bound the files that pages offer; without any they are not saved.
	Downloads Limits
	// Profile is the directory inside whose cookies and storage are kept; "" is one that
	// ends with the browser.
	Profile string
	// Roots are certificates, in DER, that the browser trusts beside its own. Warn is told
	// if it cannot, and nil ends the start then.
	Roots [][]byte
	Warn  func(error)
	// StartTimeout is how long the browser may take until it answers.
	StartTimeout time.Duration // 0: startTimeout
	// LoadTimeout is how long a page may take to load; what is there then is used.
	LoadTimeout time.Duration // 0: DefaultLoadTimeout
	// Settings choose the program, its window and its flags.
	Settings *browserkeys.Browser // nil: the defaults
}

// settings returns the settings, or the defaults.
func (o *Options) settings() *browserkeys.Browser {
	if o.Settings != nil {
		return o.Settings
	}
	s := browserkeys.Default()
	return &s
}

// DefaultLoadTimeout is the LoadTimeout where none is set.
const DefaultLoadTimeout = 30 * time.Second

// Browser is a running browser. Close it.
type Browser struct {
	machine     *machine.Machine
	process     string // "" if it was started by another process of the host
	conn        *devtools.Conn
	loadTimeout time.Duration
	windowed    bool
	tabs        int    // the most that are open
	profile     string // that is kept; "" if it is not
	refusals    Refusals
	downloads   *Downloads // nil: not saved, or another process has them
}

// Start starts a browser in its sandbox and waits until it answers.
func Start(ctx context.Context, m *machine.Machine, o Options) (_ *Browser, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.StartTimeout, startTimeout))
	defer cancel()
	found, err := programs(ctx, m, o.Profile)
	if err != nil {
		return nil, err
	}
	if err := trustRoots(ctx, m, o.Roots); err != nil && !o.mayLack(err) {
		return nil, err
	}
	argv, err := command(found, o.settings(), o.Profile)
	if err != nil {
		return nil, err
	}
	b := o.browser(m)
	b.process, err = m.Start(ctx, &machine.Command{Argv: argv, Env: append(o.Env, "HOME="+home), Grant: o.Grant})
	if err != nil {
		return nil, err
	}
	err = b.connect(ctx)
	if err == nil {
		err = errors.Join(b.setDownloads(ctx, o.Downloads), b.guardTabs(ctx))
	}
	if err != nil {
		return nil, errors.Join(b.explain(err), b.Close())
	}
	return b, nil
}

// mayLack tells of certificates that cannot be trusted, and reports whether the browser
// does without.
func (o *Options) mayLack(err error) bool {
	if o.Warn == nil || !errors.Is(err, ErrNoCertutil) {
		return false
	}
	o.Warn(err)
	return true
}

// browser returns a browser of these options that is not connected yet.
func (o *Options) browser(m *machine.Machine) *Browser {
	s := o.settings()
	return &Browser{machine: m, loadTimeout: cmp.Or(o.LoadTimeout, DefaultLoadTimeout), windowed: s.Windowed(), tabs: cmp.Or(s.Tabs, MaxTabs), profile: o.Profile}
}

// setDownloads has files that pages offer saved within limits, or not at all.
func (b *Browser) setDownloads(ctx context.Context, l Limits) error {
	if l.Files > 0 {
		return b.allowDownloads(ctx, l)
	}
	_, err := cdp.Call(ctx, b.conn.Session(""), browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny})
	return err
}

// connect waits until the browser answers and connects to it.
func (b *Browser) connect(ctx context.Context) error {
	for {
		err := b.dialControl(ctx)
		if err == nil {
			return nil
		}
		if p, gone := b.machine.Process(ctx, b.process); gone == nil && p.Result != nil {
			return fmt.Errorf("the browser ended at once, %s", ending(p.Result))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the browser does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ending says how a process ended.
func ending(r *machine.Result) string {
	if r.OOM {
		return "because memory ran out"
	}
	if r.Signal != "" {
		return "by " + r.Signal
	}
	return "with exit code " + strconv.Itoa(r.ExitCode)
}

// dialControl connects to the browser, if it answers.
func (b *Browser) dialControl(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	address, err := b.Socket(ctx)
	if err != nil {
		return err
	}
	if b.conn, err = devtools.Dial(ctx, address, b.Dial); err == nil {
		b.refuseBlocked()
	}
	return err
}

// Dial opens a further connection to the browser's control port.
func (b *Browser) Dial(ctx context.Context) (net.Conn, error) {
	return b.machine.Dial(ctx, "tcp", controlPort)
}

// Socket returns the address of the browser's WebSocket, for connections of Dial.
func (b *Browser) Socket(ctx context.Context) (string, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return b.Dial(ctx) }, DisableKeepAlives: true}}
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
	if b.process == "" {
		return err
	}
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
		return fmt.Errorf("%w: %w", err, ErrNamespaces)
	}
	return fmt.Errorf("%w; it printed: %.500q", err, lastLine(text))
}

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }
