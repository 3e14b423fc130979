package containers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/dockercli"
	"github.com/atoll-run/atoll/internal/errhint"
)

const (
	// KeepVerb is the verb of the process that serves the ports of one container.
	KeepVerb = ".ports"
	// keepPatience is how long that process may take to begin.
	keepPatience = 30 * time.Second
	// maxAnswer bounds what it says then.
	maxAnswer = 64 << 10
	// firstFile is the number of the first file that it is given.
	firstFile = 3
)

// kept is what the process that serves ports says when it has begun.
type kept struct {
	dockercli.Published
	Error string `json:"error"`
}

// Publish opens the ports of a container on 127.0.0.1 and starts the process that serves
// them, and the egress of the main command, until the container ends.
func (b *Sandboxes) Publish(ctx context.Context, c *dockercli.Container) (*dockercli.Published, error) {
	files, err := listen(ctx, c)
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	said, says, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer said.Close() //nolint:errcheck // it was read
	cmd, err := b.keeper(c.Name, append([]*os.File{says}, files...))
	if err == nil {
		err = cmd.Start()
	}
	if err = errors.Join(err, says.Close()); err != nil {
		return nil, err
	}
	answer, err := readKept(said)
	if err != nil {
		_ = cmd.Process.Kill()
		return nil, errors.Join(err, ignoreExit(cmd.Wait()))
	}
	return &answer.Published, cmd.Process.Release()
}

// ignoreExit leaves out how a process ended that was killed.
func ignoreExit(err error) error {
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil
	}
	return err
}

// listen opens the ports of a container, and notes which they are.
func listen(ctx context.Context, c *dockercli.Container) (files []*os.File, err error) {
	for i := range c.Ports {
		p := &c.Ports[i]
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", p.Asked))
		if err != nil {
			return files, errhint.With(fmt.Errorf("port %d of 127.0.0.1 cannot be published: %w", p.Asked, err), "publish on another, or on any: -p 127.0.0.1::PORT")
		}
		p.Host = l.Addr().(*net.TCPAddr).Port
		f, err := l.(*net.TCPListener).File()
		if err = errors.Join(err, l.Close()); err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// keeper is the process that serves ports. It outlives this one.
func (b *Sandboxes) keeper(name string, files []*os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "docker", KeepVerb, name) //nolint:noctx // this program, which outlives its parent
	cmd.Env = append(os.Environ(), "ATOLL_STATE_DIR="+b.state)
	cmd.Dir, cmd.ExtraFiles = "/", files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// readKept reads what the process says.
func readKept(from *os.File) (*kept, error) {
	if err := from.SetReadDeadline(time.Now().Add(keepPatience)); err != nil {
		return nil, err
	}
	var answer kept
	if err := json.NewDecoder(io.LimitReader(from, maxAnswer)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("the process that serves ports has not begun: %w", err)
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return &answer, nil
}
