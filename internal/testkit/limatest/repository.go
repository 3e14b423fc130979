//go:build linux

package limatest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/openclawtest"
)

// nodeHost is the server that the repository stands in for.
const nodeHost = "deb.nodesource.com"

// Repository is a repository of packages as apt reads it, in the place of NodeSource's. Its
// one package has the Node.js of this machine's OpenClaw.
type Repository struct {
	Key []byte // public, that packages must be signed by

	keys     string // directory of gpg
	packages []byte // the index
	file     string // the package

	mu     sync.Mutex
	signed []byte // InRelease
}

// The users whose keys there are.
const (
	owner    = "owner@example.org"
	stranger = "stranger@example.org"
)

// newRepository makes a repository that its owner has signed.
func newRepository(tb testing.TB) *Repository {
	tb.Helper()
	need.Program(tb, "gpg", "gpg")
	r := &Repository{keys: shortDir(tb), file: filepath.Join(tb.TempDir(), "nodejs.deb")}
	tb.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", r.keys, "--kill", "all").Run() }) //nolint:noctx // the test's context is over
	for _, user := range []string{owner, stranger} {
		r.gpg(tb, "", "--quick-gen-key", user, "ed25519", "sign", "never")
	}
	r.Key = r.gpg(tb, "", "--armor", "--export", owner)
	r.makePackage(tb)
	r.Sign(tb, true)
	return r
}

// gpg runs gpg with the keys of the repository.
func (r *Repository) gpg(tb testing.TB, in string, args ...string) []byte {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "gpg", append([]string{"--homedir", r.keys, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("gpg %q: %v", args, err)
	}
	return out
}

const control = `Package: nodejs
Version: 24.21.0-1nodesource1
Architecture: %s
Maintainer: Nobody <nobody@example.org>
Description: Node.js of this machine, in the place of NodeSource's
`

// makePackage makes the package, with npm in it as NodeSource's has.
func (r *Repository) makePackage(tb testing.TB) {
	tb.Helper()
	if _, err := openclawtest.Find(openclawtest.Current, os.Getenv); err != nil {
		need.Missing(tb, err)
	}
	node := filepath.Join(openclawtest.Root(openclawtest.Current, os.Getenv), "node_modules", ".bin", "node")
	text := fmt.Sprintf(control, output(tb, "dpkg", "--print-architecture"))
	cmd := exec.CommandContext(tb.Context(), "sh", "-euc", `
mkdir -p "$1/DEBIAN" "$1/usr/bin" "$1/usr/lib/node_modules"
cat >"$1/DEBIAN/control"
cp -L "$2" "$1/usr/bin/node"
cp -r "$3/npm" "$1/usr/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/bin/npm"
dpkg-deb -Znone --root-owner-group --build "$1" "$4"
rm -r "$1"`, "sh", r.file+".root", node, output(tb, "npm", "root", "--global"), r.file)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(r.file)
	if err != nil {
		tb.Fatal(err)
	}
	r.packages = fmt.Appendf(nil, "%sFilename: pool/nodejs.deb\nSize: %d\nSHA256: %s\n\n", text, len(content), sum(content))
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// Sign signs the index, by the owner's key or by that of a stranger.
func (r *Repository) Sign(tb testing.TB, byOwner bool) {
	tb.Helper()
	user := stranger
	if byOwner {
		user = owner
	}
	arch := output(tb, "dpkg", "--print-architecture")
	release := fmt.Sprintf("Origin: nodistro\nSuite: nodistro\nCodename: nodistro\nDate: %s\nArchitectures: %s\nComponents: main\nSHA256:\n %s %d main/binary-%[2]s/Packages\n",
		time.Now().UTC().Format(time.RFC1123), arch, sum(r.packages), len(r.packages))
	signed := r.gpg(tb, release, "--local-user", user, "--clearsign")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signed = signed
}

// ServeHTTP serves the repository below any directory.
func (r *Repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch path := request.URL.Path; {
	case strings.HasSuffix(path, "/dists/nodistro/InRelease"):
		r.mu.Lock()
		defer r.mu.Unlock()
		_, _ = w.Write(r.signed)
	case strings.HasSuffix(path, "/Packages"):
		_, _ = w.Write(r.packages)
	case strings.HasSuffix(path, "/pool/nodejs.deb"):
		http.ServeFile(w, request, r.file)
	default:
		http.NotFound(w, request)
	}
}
