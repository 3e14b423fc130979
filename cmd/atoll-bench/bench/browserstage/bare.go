package browserstage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/browser/devtools"
	"github.com/atoll-run/atoll/internal/errhint"
)

const (
	// shell is the browser of Debian's package chromium-headless-shell.
	shell = "/usr/lib/chromium/chromium-headless-shell"
	// pollEvery is the pause between two looks whether a browser answers, as in a sandbox.
	pollEvery = 20 * time.Millisecond
	patience  = 30 * time.Second
	// ordinary is the user that browsers run as where this process is root's.
	ordinary = 1000
)

// bare is a browser on the host, without any sandbox of Atoll's.
type bare struct {
	cmd  *exec.Cmd
	dir  string
	port int
}

// startBare starts one and waits for its first answer.
func startBare(ctx context.Context, site string) (*bare, error) {
	b := &bare{}
	var err error
	if b.dir, err = os.MkdirTemp("", "atoll-bare"); err != nil {
		return nil, err
	}
	if b.port, err = freePort(ctx); err != nil {
		return nil, err
	}
	args := []string{
		"--headless", fmt.Sprintf("--remote-debugging-port=%d", b.port), "--user-data-dir=" + b.dir, "--window-size=1280,800", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-breakpad", "--disable-extensions", "--disable-gpu", "--mute-audio",
		"--host-resolver-rules=MAP page.example:443 " + site, "--ignore-certificate-errors",
	}
	b.cmd = exec.CommandContext(ctx, shell, append(args, "about:blank")...)
	b.cmd.Dir, b.cmd.Env = b.dir, []string{"HOME=" + b.dir, "PATH=" + os.Getenv("PATH")}
	if os.Geteuid() == 0 { // Chromium has no sandbox of its own as root
		b.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
		err = os.Chown(b.dir, ordinary, ordinary)
	}
	if err = errors.Join(err, b.cmd.Start()); err != nil {
		return nil, errhint.With(err, "install chromium-headless-shell")
	}
	if err := b.connect(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// connect waits until the browser has answered a call.
func (b *bare) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dial := func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", b.address())
	}
	for {
		socket, err := b.socket(ctx)
		if err == nil {
			conn, err := devtools.Dial(ctx, socket, dial)
			if err == nil {
				return conn.Close()
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the browser on the host does not answer: %w", err)
		case <-time.After(pollEvery):
		}
	}
}

func (b *bare) address() string { return "127.0.0.1:" + strconv.Itoa(b.port) }

// socket asks for the address of the WebSocket.
func (b *bare) socket(ctx context.Context) (string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.address()+"/json/version", nil)
	if err != nil {
		return "", err
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var version struct {
		Socket string `json:"webSocketDebuggerUrl"`
	}
	err = json.NewDecoder(answer.Body).Decode(&version)
	return version.Socket, err
}

// Close ends the browser.
func (b *bare) Close() error {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
	return os.RemoveAll(b.dir)
}

// freePort returns a port that nothing listens on.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// memory returns the processes of Chromium on this machine with the memory of each, in
// MiB: pages that several share count in parts.
func memory() map[string]float64 {
	found := map[string]float64{}
	all, _ := filepath.Glob("/proc/[0-9]*/smaps_rollup")
	for _, file := range all {
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(name), "chromium") && !strings.HasPrefix(string(name), "headless_shell") {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
				kib, _ := strconv.ParseFloat(fields[1], 64)
				found[file] = kib / 1024
			}
		}
	}
	return found
}

// memoryBeyond is that of the processes that were not there before, once it grows no more.
func memoryBeyond(before map[string]float64) float64 {
	most := 0.0
	for quiet := 0; quiet < 8; time.Sleep(pollEvery * 10) {
		sum := 0.0
		for file, size := range memory() {
			if _, was := before[file]; !was {
				sum += size
			}
		}
		if quiet++; sum > most*1.01 {
			most, quiet = sum, 0
		}
	}
	return most
}
