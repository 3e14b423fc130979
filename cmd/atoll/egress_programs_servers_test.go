//go:build linux

package main

import (
	"bytes"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/internettest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// programServers are what real programs are tried against: web servers with TLS,
// registries, and git by https and by ssh.
type programServers struct {
	*internettest.Internet
	dir        string
	repository string // bare, on this machine
	known      string // the line of known_hosts for the ssh server
	key        string // of a person who may log in there
}

func newProgramServers(t *testing.T) *programServers {
	t.Helper()
	s := &programServers{dir: t.TempDir()}
	s.makeRepository(t)
	mux := http.NewServeMux()
	mux.Handle(webName+"/", internettest.Hello())
	mux.Handle(gitName+"/", s.gitBackend(t))
	for name, handler := range registries(t) {
		mux.Handle(name+"/", handler)
	}
	n, err := internettest.Start(mux)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	s.Internet = n
	n.Route("22", s.serveSSH(t))
	return s
}

// run runs a program of this machine and returns what it prints.
func (s *programServers) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// makeRepository makes a repository with one commit, which takes pushes.
func (s *programServers) makeRepository(t *testing.T) {
	t.Helper()
	s.repository = filepath.Join(s.dir, "hello.git")
	s.run(t, "git", "init", "-q", "--bare", "-b", "main", s.repository)
	tree := s.run(t, "git", "-C", s.repository, "hash-object", "-t", "tree", "-w", "/dev/null")
	s.run(t, "git", "-C", s.repository, "update-ref", "refs/heads/main", s.run(t, "git", "-C", s.repository, "commit-tree", "-m", "one", tree))
	s.run(t, "git", "-C", s.repository, "config", "http.receivepack", "true")
}

// gitBackend serves the repository as git's own program for web servers does.
func (s *programServers) gitBackend(t *testing.T) http.Handler {
	t.Helper()
	return &cgi.Handler{
		Path: filepath.Join(s.run(t, "git", "--exec-path"), "git-http-backend"), Root: "/",
		Env: []string{"GIT_PROJECT_ROOT=" + s.dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
	}
}

const sshConfig = `HostKey @DIR@/host
AuthorizedKeysFile @DIR@/person.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
`

// serveSSH has a real sshd serve each connection, and returns the address.
func (s *programServers) serveSSH(t *testing.T) string {
	t.Helper()
	const daemon = "/usr/sbin/sshd"
	need.Program(t, daemon, "openssh-server")
	for _, key := range []string{"host", "person"} {
		s.run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", filepath.Join(s.dir, key))
	}
	s.known, s.key = sshName+" "+s.read(t, "host.pub"), s.read(t, "person")
	config := filepath.Join(s.dir, "sshd_config")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(sshConfig, "@DIR@", s.dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // as Debian's service does
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sessions sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); sessions.Wait() })
	sessions.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() { s.sshSession(t, conn.(*net.TCPConn), daemon, config) })
		}
	})
	return l.Addr().String()
}

// sshSession has sshd serve one connection, as inetd would.
func (s *programServers) sshSession(t *testing.T, conn *net.TCPConn, daemon, config string) {
	defer conn.Close()
	file, err := conn.File()
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), daemon, "-i", "-e", "-f", config)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, file, &said
	if err := cmd.Run(); err != nil {
		t.Logf("sshd: %v: %s", err, said.Bytes())
	}
}

func (s *programServers) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
