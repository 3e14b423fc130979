//go:build linux

package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// forge is a server that takes a token and repeats all of each request, and the
// proxy by which the host reaches it under a name.
type forge struct {
	token  string
	proxy  string // its address
	caFile string
	engine []string // the backend of the sandbox and its variable; nil: no engine
	mu     sync.Mutex
	seen   []string // Authorization of every request
}

const forgeName = "forge.example.com"

func newForge(t *testing.T) *forge {
	t.Helper()
	f := &forge{token: "ghp_" + rand.Text() + rand.Text()[:10], caFile: filepath.Join(t.TempDir(), "ca.pem")}
	server := httptest.NewUnstartedServer(http.HandlerFunc(f.answer))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{f.certificate(t)}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		tunnel(w, q, server.Listener.Addr().String())
	}))
	f.proxy = proxy.URL
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return f
}

// certificate is one for the server's name, which signs itself.
func (f *forge) certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{forgeName}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// answer repeats a request in every form that is scrubbed.
func (f *forge) answer(w http.ResponseWriter, q *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, q.Header.Get("Authorization"))
	f.mu.Unlock()
	text := fmt.Sprintf("%s %s %v", q.Method, q.URL, q.Header)
	w.Header().Set("X-Echo", q.Header.Get("Authorization"))
	fmt.Fprintf(w, "%s\n%s\n", text, base64.StdEncoding.EncodeToString([]byte(text)))
}

// tunnel connects a program to an address, whatever it asked for.
func tunnel(w http.ResponseWriter, q *http.Request, address string) {
	if q.Method != http.MethodConnect || q.Host != forgeName+":443" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	server, err := net.Dial("tcp", address)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(server, buffered)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// disguises are the forms that a token could be kept in, and its two halves.
func (f *forge) disguises() []string {
	half := len(f.token) / 2
	all := []string{f.token[4:half], f.token[half:]}
	for offset := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + f.token))
		all = append(all, encoded[12:len(encoded)-4])
	}
	return all
}

// none fails if a text holds the token.
func (f *forge) none(t *testing.T, where string, text []byte) {
	t.Helper()
	for _, form := range f.disguises() {
		if bytes.Contains(text, []byte(form)) {
			t.Errorf("the token is in %s, as %s", where, form)
			return
		}
	}
}

// insideForge uses the token as programs do, and where it may not be. Then it takes
// patterns from its input and searches all that a process inside can read for them.
const insideForge = `
env -i "PATH=$PATH" curl -sS https://` + forgeName + `/without-variables
curl -si https://` + forgeName + `/bearer -H "Authorization: Bearer $GH_TOKEN"
curl -si https://` + forgeName + `/basic -u "x-access-token:$GH_TOKEN"
curl -si "https://` + forgeName + `/query?t=$GH_TOKEN"
curl -si https://` + forgeName + `/body --data "$GH_TOKEN"
curl -si https://` + forgeName + `/other -H 'Authorization: Bearer of-another-account'
env
echo used
cat >/tmp/patterns
find / \( -path /proc -o -path /sys -o -path /tmp/patterns \) -prune -o -type f -newerct '5 minutes ago' -exec grep -lF -f /tmp/patterns {} + 2>/dev/null | sed 's/^/FOUND /'
for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do
  if grep -qF -f /tmp/patterns $f 2>/dev/null; then echo FOUND $f; fi
done
rm /tmp/patterns
echo searched
`

// TestSecretsNeverEnter has programs in a real sandbox use a token, and looks for it in
// their environment, memory, files and answers, in the guest's memory, in the audit log
// and in what atoll prints; as it is, in base64 and by halves.
func TestSecretsNeverEnter(t *testing.T) {
	need.Program(t, "curl", "curl")
	newForge(t).neverEnters(t)
}

// The same in sandboxes of engines.
func TestSecretsNeverEnterEngines(t *testing.T) {
	for backend, variable := range map[string]string{"docker": "DOCKER_HOST=" + enginetest.Docker(t), "podman": "CONTAINER_HOST=" + enginetest.Podman(t)} {
		t.Run(backend, func(t *testing.T) {
			f := newForge(t)
			f.engine = []string{backend, variable}
			f.neverEnters(t)
		})
	}
}

func (f *forge) neverEnters(t *testing.T) {
	t.Helper()
	r := newReader(t, nil)
	cmd := f.run(t, r, insideForge)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	printed := readUntil(reader, "used\n")
	f.searchSandbox(t, placeholderIn(printed)) // before the patterns go through the guest
	_, _ = io.WriteString(in, strings.Join(f.disguises(), "\n")+"\n")
	_ = in.Close()
	printed += readUntil(reader, "")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	f.none(t, "what was answered", []byte(printed))
	f.none(t, "what atoll printed", errs.Bytes())
	f.checkAnswers(t, printed, errs.String())
	f.searchState(t, r.path(".atoll"))
}

// run returns a command in a sandbox that has the token.
func (f *forge) run(t *testing.T, r *reader, script string) *exec.Cmd {
	t.Helper()
	r.mkdir(".atoll")
	r.chmod(".atoll", 0o700)
	backend, env := "", append(r.env, "FORGE_TOKEN="+f.token)
	if f.engine != nil {
		backend, env = fmt.Sprintf("backend: %q, docker: { image: %q, containerPrefix: %q }, ", f.engine[0], enginetest.Image, "forge-"+strings.ToLower(rand.Text()[:8])+"-"), append(env, f.engine[1])
	}
	r.write(".atoll/atoll.json5", fmt.Sprintf(`{
  outbound: { caFile: %q },
  secrets: { forge: { from: [{ env: "FORGE_TOKEN" }], hosts: [%q], env: "GH_TOKEN" } },
  agents: { defaults: { sandbox: { %segress: { mode: "enforce", upstream: %q, allow: [{ host: %q, methods: ["GET", "POST"], secret: "forge" }] } } } },
}`, f.caFile, forgeName, backend, f.proxy, forgeName), 0o600)
	cmd := exec.CommandContext(t.Context(), "atoll", "run", "--rm", "--", "sh", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.path("project"), env, time.Minute
	return cmd
}

// An ordinary user has the same.
func TestSecretsNeverEnterAsUser(t *testing.T) { asSomeone(t, "TestSecretsNeverEnter", nil) }

// readUntil reads up to a line, or to the end.
func readUntil(from *bufio.Reader, line string) string {
	var all strings.Builder
	for {
		text, err := from.ReadString('\n')
		all.WriteString(text)
		if err != nil || text == line {
			return all.String()
		}
	}
}

// placeholderIn is the value of GH_TOKEN in the output of env.
func placeholderIn(printed string) string {
	_, rest, _ := strings.Cut(printed, "\nGH_TOKEN=")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// checkAnswers looks at what the server got and what the program was answered.
func (f *forge) checkAnswers(t *testing.T, printed, errs string) {
	t.Helper()
	fake := placeholderIn(printed)
	if len(fake) != len(f.token) || !strings.HasPrefix(fake, "ghp_") {
		t.Fatalf("the placeholder is %q\n%s\n%s", fake, printed, errs)
	}
	f.mu.Lock()
	seen := strings.Join(f.seen, "|")
	f.mu.Unlock()
	if want := "|Bearer " + f.token + "|Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+f.token)); seen != want {
		t.Errorf("the server saw %d requests", len(f.seen))
	}
	for _, want := range []string{"GET /without-variables ", "X-Echo: Bearer " + fake, "the address holds its placeholder", "the body holds its placeholder", "and no other credential"} {
		if !strings.Contains(printed, want) {
			t.Errorf("no %q in\n%s", want, printed)
		}
	}
	if strings.Contains(printed, "FOUND") || !strings.HasSuffix(printed, "searched\n") {
		t.Errorf("found inside:\n%s", printed)
	}
	if !strings.Contains(errs, "secret forge: the address holds its placeholder") {
		t.Errorf("the person is not told: %s", errs)
	}
}

// searchSandbox reads the memory of every process of the sandbox, that of the guest
// among them, if this user may.
func (f *forge) searchSandbox(t *testing.T, fake string) {
	t.Helper()
	space := ""
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		if environ, err := os.ReadFile(p + "/environ"); err == nil && fake != "" && bytes.Contains(environ, []byte("GH_TOKEN="+fake)) {
			space, _ = os.Readlink(p + "/ns/pid")
		}
	}
	if space == "" {
		t.Error("no process of the sandbox was found")
	}
	searched := 0
	for _, p := range processes {
		if theirs, _ := os.Readlink(p + "/ns/pid"); theirs == space && f.searchMemory(t, p) {
			searched++
		}
	}
	if searched < 2 && os.Geteuid() == 0 {
		t.Errorf("the memory of %d processes was read", searched)
	}
}

// searchMemory reads what a process can write to.
func (f *forge) searchMemory(t *testing.T, process string) bool {
	t.Helper()
	maps, err := os.ReadFile(process + "/maps")
	if err != nil {
		return false
	}
	memory, err := os.Open(process + "/mem")
	if err != nil {
		return false
	}
	defer memory.Close()
	read := 0
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") || to-from > 1<<30 {
			continue
		}
		part := make([]byte, to-from)
		n, _ := memory.ReadAt(part, from)
		read += n
		f.none(t, process, part[:n])
	}
	return read > 0
}

// searchState looks into every file of the installation.
func (f *forge) searchState(t *testing.T, state string) {
	t.Helper()
	leaks, files := false, 0
	err := filepath.WalkDir(state, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // the guest's program, which may only be executed
		}
		files++
		leaks = leaks || bytes.Contains(content, []byte(`"event":"leak-attempt"`))
		f.none(t, path, content)
		return nil
	})
	if err != nil || files < 4 || !leaks {
		t.Errorf("%d files, leak attempts recorded: %v, %v", files, leaks, err)
	}
	if left, err := filepath.Glob(filepath.Join(state, "egress", "*")); err != nil || len(left) > 0 {
		t.Errorf("left of the sandbox: %v", left)
	}
}

// TestProgramsThroughInspect has real programs use the token by the variable alone: each
// finds the sandbox's CA by its own means.
func TestProgramsThroughInspect(t *testing.T) {
	f := newForge(t)
	for name, script := range map[string]string{
		"curl":    `curl -sS https://forge.example.com/curl -H "Authorization: Bearer $GH_TOKEN"`,
		"wget":    `wget -qO- https://forge.example.com/wget --header "Authorization: Bearer $GH_TOKEN"`,
		"git":     `git -c http.extraHeader="Authorization: Bearer $GH_TOKEN" ls-remote https://forge.example.com/git 2>&1 | sed 's/.*not valid: is this a git repository.*/GET \/git/'`,
		"python3": `python3 -c 'import os,urllib.request as r; print(r.urlopen(r.Request("https://forge.example.com/python3", headers={"Authorization": "Bearer "+os.environ["GH_TOKEN"]})).read().decode())'`,
		"node":    `node -e 'fetch("https://forge.example.com/node", {headers: {authorization: "Bearer "+process.env.GH_TOKEN}}).then(r => r.text()).then(console.log)'`,
	} {
		t.Run(name, func(t *testing.T) {
			need.Program(t, name, name)
			out, err := f.run(t, newReader(t, nil), script).CombinedOutput()
			f.none(t, "the output", out)
			if err != nil || !strings.Contains(string(out), "GET /"+name) || !f.saw("Bearer "+f.token) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// saw reports whether the last request had a credential.
func (f *forge) saw(credential string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.seen) > 0 && f.seen[len(f.seen)-1] == credential
}
