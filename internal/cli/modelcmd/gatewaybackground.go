package modelcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/serve"
)

const (
	// startPatience is how long a gateway in the background has to answer.
	startPatience = 30 * time.Second
	// startLook is the time between two looks at whether it does.
	startLook = 5 * time.Millisecond
	// againPause is before another try where a gateway has the state directory and does
	// not answer yet, or any more.
	againPause = 50 * time.Millisecond
	// backgroundLog is what a gateway in the background writes, in the state directory,
	// and maxBackgroundLog the size at which the next one begins it anew.
	backgroundLog    = "gateway.log"
	maxBackgroundLog = 1 << 20
	// configVariable names the file of the configuration.
	configVariable = "ATOLL_CONFIG"
	// maxSaid bounds what is shown of the log of one that did not start.
	maxSaid = 2 << 10
)

// startInBackground prints the socket of the gateway that serves this user, which it
// starts, in a session of its own, if none answers.
func (e *env) startInBackground(ctx context.Context, idle time.Duration) error {
	b, err := e.newBackground("--private", "--idle", idle.String())
	if err != nil {
		return err
	}
	if err := b.ensure(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.Out, b.socket)
	return err
}

// newBackground returns the gateway of this user, to be started with flags if none runs.
func (e *env) newBackground(flags ...string) (*background, error) {
	settings, err := e.Load()
	if err != nil {
		return nil, err
	}
	return &background{env: e, socket: serve.SocketPath(settings), state: settings.Paths.AtollState, flags: flags}, nil
}

// ensure returns when a gateway answers, after it has started one if none did.
func (b *background) ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for !b.answers(ctx) {
		if err := b.start(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return b.late()
		}
	}
	return nil
}

// background is a gateway that is started for the programs of its user.
type background struct {
	env           *env
	socket, state string
	flags         []string // of atoll gateway
}

// answers reports whether a process accepts connections at the socket.
func (b *background) answers(ctx context.Context) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", b.socket)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// start starts a gateway and returns when one answers, or when this one found that
// another owns the state directory, which may be about to end.
func (b *background) start(ctx context.Context) error {
	log, err := b.openLog()
	if err != nil {
		return err
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd, err := b.command(log)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(startLook)
	defer look.Stop()
	for !b.answers(ctx) {
		select {
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			return b.late()
		case <-ended:
			return b.explain(log, from)
		case <-look.C:
		}
	}
	return nil
}

// late is the error of a gateway that does not answer in time.
func (b *background) late() error {
	return errhint.With(fmt.Errorf("no gateway answers at %s within %s", b.socket, startPatience), "see "+filepath.Join(b.state, backgroundLog))
}

// command is the gateway to start. It has the configuration of its user, not that of the
// directory which it happens to be started in.
func (b *background) command(log *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"gateway"}, b.flags...)...) //nolint:noctx // this program, which outlives its parent
	if b.env.ConfigPath != "" {
		path, err := filepath.Abs(b.env.ConfigPath)
		if err != nil {
			return nil, err
		}
		cmd.Args = append(cmd.Args, "--config", path)
	}
	cmd.Env = append(os.Environ(), "ATOLL_STATE_DIR="+b.state)
	if written := os.Getenv(configVariable); written != "" {
		path, err := filepath.Abs(written)
		if err != nil {
			return nil, err
		}
		cmd.Env = append(cmd.Env, configVariable+"="+path)
	}
	cmd.Dir, cmd.Stderr = "/", log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// openLog opens what the gateway writes to.
func (b *background) openLog() (*os.File, error) {
	if err := os.MkdirAll(b.state, 0o700); err != nil {
		return nil, err
	}
	flags := os.O_CREATE | os.O_RDWR | os.O_APPEND
	path := filepath.Join(b.state, backgroundLog)
	if info, err := os.Stat(path); err == nil && info.Size() > maxBackgroundLog {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(path, flags, 0o600)
}

// explain returns why a gateway did not start. That another one has the state directory
// is no reason: it answers soon, or ends.
func (b *background) explain(log *os.File, from int64) error {
	said, err := io.ReadAll(io.NewSectionReader(log, from, maxSaid))
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(said))
	if strings.Contains(text, serve.ErrRuns.Error()) {
		time.Sleep(againPause)
		return nil
	}
	why, hint := problemOf(text)
	return errhint.With(errors.New("the gateway did not start: "+console.Printable(why)), console.Printable(hint)+": `atoll gateway "+strings.Join(b.flags, " ")+"`")
}

// problemOf returns the error and the hint that a log ends with; all of it, if it has none.
func problemOf(text string) (why, hint string) {
	why, hint = text, "see all that it says"
	for line := range strings.Lines(text) {
		if said, ok := strings.CutPrefix(line, "error: "); ok {
			why = strings.TrimSpace(said)
		}
		if said, ok := strings.CutPrefix(line, "hint: "); ok {
			hint = strings.TrimSpace(said)
		}
	}
	return why, hint
}
