//go:build linux

package limatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/term"
)

// SSHVariable has every `shell` go over ssh, as Lima's does. Without it those do that have
// a terminal; a connection takes a fifth of a second.
const SSHVariable = "LIMATEST_SSH"

// sshDir has the files of sshd, inside.
const sshDir = "/etc/limatest"

const serverConfig = `HostKey /etc/limatest/host
AuthorizedKeysFile /etc/limatest/person.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
`

const clientConfig = `Host lima-*
User root
IdentityFile %[1]s/upper/etc/limatest/person
IdentitiesOnly yes
UserKnownHostsFile /dev/null
StrictHostKeyChecking no
LogLevel ERROR
ProxyCommand %[1]s/limactl sshd %[2]s
`

// createSSH makes the keys of a virtual machine, and the file by which ssh finds it.
func createSSH(name string) error {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		return nil // tests that need it say so
	}
	dir := filepath.Join(dirOf(name), "upper", sshDir)
	for _, d := range []string{dir, filepath.Join(dirOf(name), "upper", "run", "sshd")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for _, key := range []string{"host", "person"} {
		if out, err := exec.CommandContext(context.Background(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			return fmt.Errorf("ssh-keygen: %w: %s", err, out)
		}
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "sshd_config"), []byte(serverConfig), 0o600),
		os.WriteFile(filepath.Join(dirOf(name), "ssh.config"), fmt.Appendf(nil, clientConfig, dirOf(name), name), 0o600))
}

// usesSSH reports whether a command goes over ssh.
func usesSSH() bool { return term.IsTerminal(int(os.Stdout.Fd())) || os.Getenv(SSHVariable) != "" }

// overSSH runs a command inside as limactl does: ssh has the streams of this process, and a
// terminal inside if the output is one.
func overSSH(name, workdir string, argv []string) error {
	words := []string{"env", "PATH=" + searchPath, "HOME=/root"}
	for _, a := range argv {
		words = append(words, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	args := []string{"-F", filepath.Join(dirOf(name), "ssh.config")}
	if term.IsTerminal(int(os.Stdout.Fd())) {
		args = append(args, "-t")
	}
	cmd := exec.CommandContext(context.Background(), "ssh", append(args, "lima-"+name, "--", "cd '"+workdir+"' || exit 1; exec "+strings.Join(words, " "))...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// sshd serves one connection inside, on standard input and output.
func sshd(name string) error {
	pid, err := os.ReadFile(filepath.Join(dirOf(name), "pid"))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "nsenter", "--mount", "--target", string(pid), "--", "/usr/sbin/sshd", "-i", "-f", sshDir+"/sshd_config")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
