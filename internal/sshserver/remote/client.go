package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sshserver/clientconfig"
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,100}$`)

// Command returns the command line of OpenSSH's client for a sandbox of a gateway. The keys
// and the configuration are in a directory of the state directory.
func Command(ctx context.Context, dir, gateway, name string, words []string) (*exec.Cmd, error) {
	program, err := exec.LookPath("ssh")
	if err != nil {
		return nil, errhint.With(errors.New("ssh is not installed"), "install OpenSSH's client, or use `atoll exec`")
	}
	if !nameForm.MatchString(name) {
		return nil, errhint.With(errors.New("that is no name of a sandbox"), "`atoll ps` lists them")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	files, err := clientconfig.Make(dir, self)
	if err != nil {
		return nil, err
	}
	proxy, err := clientconfig.ProxyCommand(self, gateway)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-F", files.ConfigPath(), "-o", "ProxyCommand=" + proxy, "--", name + clientconfig.Domain}, words...)
	return clientconfig.Client(ctx, program, args...), nil
}

// Stdio is standard input and output as a connection that can be closed while it is read.
func Stdio(in io.Reader, out io.Writer) net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		_, _ = io.Copy(theirs, in) // until the client leaves
		_ = theirs.Close()
	}()
	go func() { _, _ = io.Copy(out, theirs) }()
	return ours
}
