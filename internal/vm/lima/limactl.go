package lima

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

// maxOutput bounds what is kept of a program's output.
const maxOutput = 4 << 20

// The states of a virtual machine.
const (
	Running = "Running"
	Stopped = "Stopped"
)

// VM is a virtual machine of Lima.
type VM struct {
	Program string    // limactl
	Name    string    // of the instance
	Log     io.Writer // what limactl says while it works
}

// Find returns where limactl is.
func Find() (string, error) {
	path, err := exec.LookPath("limactl")
	if err != nil {
		return "", errhint.With(errors.New("limactl is not installed"), "run `brew install lima`")
	}
	return path, nil
}

// Version returns the version of limactl.
func (v *VM) Version(ctx context.Context) (Version, error) {
	out, err := v.output(ctx, "--version")
	if err != nil {
		return Version{}, err
	}
	return ParseVersion(out)
}

// Instance is a virtual machine as Lima lists it.
type Instance struct {
	Name   string `json:"name"`
	Status string `json:"status"` // "" if there is none
	Dir    string `json:"dir"`
}

// Look returns what Lima knows of the virtual machine.
func (v *VM) Look(ctx context.Context) (Instance, error) {
	out, err := v.output(ctx, "list", "--json")
	if err != nil {
		return Instance{}, err
	}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var i Instance
		switch err := d.Decode(&i); {
		case errors.Is(err, io.EOF):
			return Instance{}, nil
		case err != nil:
			return Instance{}, fmt.Errorf("limactl list: %w", err)
		case i.Name == v.Name:
			return i, nil
		}
	}
}

// Create makes the virtual machine from a file.
func (v *VM) Create(ctx context.Context, file string) error {
	return v.run(ctx, "create", "--tty=false", "--name="+v.Name, file)
}

// Start starts the virtual machine and waits until it answers.
func (v *VM) Start(ctx context.Context) error { return v.run(ctx, "start", "--tty=false", v.Name) }

// Stop stops the virtual machine; with force at once.
func (v *VM) Stop(ctx context.Context, force bool) error {
	if force {
		return v.run(ctx, "stop", "--force", v.Name)
	}
	return v.run(ctx, "stop", v.Name)
}

// Delete removes the virtual machine and its disk.
func (v *VM) Delete(ctx context.Context) error { return v.run(ctx, "delete", "--force", v.Name) }

// ShellArgs returns the command that runs a program inside, or a shell.
func (v *VM) ShellArgs(workdir string, argv ...string) []string {
	return append([]string{v.Program, "shell", "--workdir=" + workdir, v.Name}, argv...)
}

// Run runs a script as root inside and returns what it prints.
func (v *VM) Run(ctx context.Context, script string, in io.Reader) (string, error) {
	argv := v.ShellArgs("/", "sudo", "sh", "-euc", script)
	return v.capture(exec.CommandContext(ctx, argv[0], argv[1:]...), in)
}

// Read runs a program inside and writes at most so many bytes of what it prints.
func (v *VM) Read(ctx context.Context, argv []string, in io.Reader, to io.Writer, most int64) error {
	argv = v.ShellArgs("/", argv...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	said := &tailbuf.Writer{Most: 2000}
	cmd.Stdin, cmd.Stderr = in, said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = io.Copy(to, io.LimitReader(out, most))
	_ = out.Close()
	if wait := cmd.Wait(); wait != nil {
		return fmt.Errorf("%w: %s", wait, bytes.TrimSpace(said.Bytes()))
	}
	return err
}

func (v *VM) output(ctx context.Context, args ...string) (string, error) {
	return v.capture(exec.CommandContext(ctx, v.Program, args...), nil)
}

// capture runs a program; its error has the end of what the program said.
func (v *VM) capture(cmd *exec.Cmd, in io.Reader) (string, error) {
	var out limited
	said := &tailbuf.Writer{Most: 2000}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, said
	err := cmd.Run()
	switch {
	case err != nil:
		return out.String(), fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	case out.full:
		return "", fmt.Errorf("%s printed more than %d bytes", cmd.Args[0], maxOutput)
	}
	return out.String(), nil
}

// limited keeps the beginning of what is written.
type limited struct {
	bytes.Buffer
	full bool
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.full = l.full || l.Len()+len(p) > maxOutput; !l.full {
		l.Buffer.Write(p)
	}
	return len(p), nil
}

// run runs limactl for a person to watch.
func (v *VM) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, v.Program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it cleans up
	cmd.Stdout, cmd.Stderr = v.Log, v.Log
	if err := cmd.Run(); err != nil {
		return errhint.With(fmt.Errorf("limactl %s %s: %w", args[0], v.Name, err), "`atoll vm logs` shows more")
	}
	return nil
}
