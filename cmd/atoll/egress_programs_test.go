//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

const programSources = "../../testdata/programs"

// splicedPrograms are run with rules that only name hosts: no variable is set for them,
// and they check the certificates of the servers themselves.
var splicedPrograms = []string{"curl", "curl4", "plain", "wget", "python", "node", "cares", "java", "musl", "static", "git", "ssh", "npm", "pip", "cargo", "go", "apt"}

// inspectedPrograms are run with rules that read requests.
var inspectedPrograms = []string{"push", "java", "npm", "pip", "cargo", "go", "static"}

// TestRealPrograms has real programs in a sandbox reach real servers by rules alone, as
// root and as an ordinary user. The servers have certificates of an authority that this
// host trusts, as that of a company.
func TestRealPrograms(t *testing.T) {
	need.Root(t, "it has the host trust an authority, in a mount namespace, and becomes another user")
	for _, program := range [][2]string{{"musl-gcc", "musl-tools"}, {"/usr/bin/cargo", "cargo"}, {"/usr/bin/pip3", "python3-pip"}, {"javac", "default-jdk-headless"}, {"wget", "wget"}, {"npm", "npm"}, {"apt-get", "apt"}} {
		need.Program(t, program[0], program[1])
	}
	servers := newProgramServers(t)
	files := programFiles(t, servers)
	for name, uid := range map[string]int{"root": 0, "user": someone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgramCaller(t, servers, uid)
			p.try(t, files, splicedPrograms, webName, webName+":80", gitName, sshName+":22", npmName, pipName, cargoName, goName, aptName+":80")
			var rules []string
			for _, host := range []string{webName, npmName, pipName, cargoName, goName} {
				rules = append(rules, fmt.Sprintf(`{ host: %q, methods: ["GET", "HEAD"] }`, host))
			}
			p.try(t, files, inspectedPrograms, append(rules, fmt.Sprintf(`{ host: %q, methods: ["GET", "HEAD"], git: "read" }`, gitName))...)
			if servers.run(t, "git", "-C", servers.repository, "branch", "--list", "pushed") != "" {
				t.Error("a push arrived")
			}
		})
	}
}

// staticFetch prints what a web server answers. It is linked without any C library.
const staticFetch = `package main

import ("io"; "net/http"; "os")

func main() {
	answer, err := http.Get(os.Args[1])
	if err == nil {
		_, err = io.Copy(os.Stdout, answer.Body)
	}
	if err != nil {
		panic(err)
	}
}
`

// programFiles are the files that the sandbox gets, as an archive.
func programFiles(t *testing.T, s *programServers) []byte {
	t.Helper()
	dir := t.TempDir()
	s.run(t, "musl-gcc", "-static", "-Os", "-o", filepath.Join(dir, "fetch-musl"), source(t, "fetch.c"))
	if err := os.WriteFile(filepath.Join(dir, "fetch.go"), []byte(staticFetch), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "fetch-go"), filepath.Join(dir, "fetch.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files := map[string]string{"key": s.key, "known_hosts": s.known}
	for _, path := range []string{filepath.Join(dir, "fetch-musl"), filepath.Join(dir, "fetch-go"), source(t, "Fetch.java"), source(t, "programs.sh")} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = string(text)
	}
	return plainTar(t, files)
}

func source(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(programSources, name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// programCaller is a person of this machine, which trusts the authority of the servers.
type programCaller struct {
	home       string
	uid        int
	atoll      string
	repository string
	golang     string
}

func newProgramCaller(t *testing.T, s *programServers, uid int) *programCaller {
	t.Helper()
	home, err := os.MkdirTemp("", "p") //nolint:usetesting // short, for sockets, and another user's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	p := &programCaller{home: home, uid: uid, atoll: filepath.Join(home, "bin", "atoll"), repository: s.repository, golang: filepath.Join(s.run(t, "go", "env", "GOROOT"), "bin", "go")}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	roots, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"bin/atoll": program, "company.pem": s.CA, "roots.pem": append(roots, s.CA...),
		".atoll/atoll.json5": fmt.Appendf(nil, `{ agents: { defaults: { sandbox: { backend: "linux", egress: { upstream: %q } } } } }`, s.Proxy),
	} {
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	p.makeJavaStore(t, s)
	if err := errors.Join(os.Chmod(filepath.Join(home, ".atoll", "atoll.json5"), 0o600), os.Chmod(filepath.Join(home, "roots.pem"), 0o644), os.Chmod(home, 0o755), os.Mkdir(filepath.Join(home, "project"), 0o755), giveTo(home, uid)); err != nil {
		t.Fatal(err)
	}
	return p
}

// makeJavaStore adds the authority to what Java trusts, as ca-certificates-java does.
func (p *programCaller) makeJavaStore(t *testing.T, s *programServers) {
	t.Helper()
	store := filepath.Join(p.home, "cacerts")
	text, err := os.ReadFile("/etc/ssl/certs/java/cacerts")
	if err == nil {
		err = os.WriteFile(store, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, "keytool", "-importcert", "-noprompt", "-alias", "company", "-file", filepath.Join(p.home, "company.pem"), "-keystore", store, "-storepass", "changeit")
}

// asPerson runs its arguments as a user, on a host that trusts other roots.
const asPerson = `set -e
mount --bind "$1" /etc/ssl/certs/ca-certificates.crt
mount --bind "$2" /etc/ssl/certs/java/cacerts
uid=$3
shift 3
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"`

// try runs programs in a sandbox with some rules.
func (p *programCaller) try(t *testing.T, files []byte, names []string, rules ...string) {
	t.Helper()
	args := []string{"--mount", "sh", "-c", asPerson, "sh", filepath.Join(p.home, "roots.pem"), filepath.Join(p.home, "cacerts"), strconv.Itoa(p.uid), p.atoll, "run", "--rm"}
	for _, rule := range rules {
		args = append(args, "--egress", rule)
	}
	args = append(args, "--env", "REPOSITORY="+p.repository, "--env", "GO="+p.golang, "--", "sh", "-c", `tar -xf - && exec sh programs.sh "$@"`, "sh")
	cmd := exec.CommandContext(t.Context(), "unshare", append(args, names...)...)
	cmd.Dir, cmd.WaitDelay, cmd.Stdin = filepath.Join(p.home, "project"), time.Minute, bytes.NewReader(files)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "DOCKER_HOST=" + nowhere, "NODE_EXTRA_CA_CERTS=" + filepath.Join(p.home, "company.pem"), "GORACE=atexit_sleep_ms=0"}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, &said)
	}
	for _, name := range names {
		if !strings.Contains("\n"+string(out), "\nok "+name+"\n") {
			t.Errorf("%s does not work:\n%s%s", name, out, &said)
		}
	}
}
