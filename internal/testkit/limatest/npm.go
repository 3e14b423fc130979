//go:build linux

package limatest

import (
	"archive/tar"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/openclawtest"
)

// leftOut are the parts of OpenClaw's package that `openclaw --version` does without: its
// web pages, its documents, and the packages that it depends on, half a gigabyte that npm
// would take a minute for. `make openclaw` has npm install them all.
var leftOut = map[string]bool{"docs": true, "node_modules": true, "dist/control-ui": true, "dist/worker": true}

// packageRegistry serves the OpenClaw of this machine as npm's registry does, and no other
// package.
type packageRegistry struct {
	document map[string]any // package.json, without dependencies
	file     string         // the package
	sum      string         // its integrity
}

// servePackages returns the port of a registry on the loopback interface.
func servePackages(tb testing.TB) (port int) {
	tb.Helper()
	from := filepath.Join(openclawtest.Root(openclawtest.Current, os.Getenv), "node_modules", "openclaw")
	r := &packageRegistry{file: filepath.Join(tb.TempDir(), "openclaw.tar")}
	if err := r.pack(from); err != nil {
		tb.Fatal(err)
	}
	l := listen(tb)
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	tb.Cleanup(func() { _ = server.Close() })
	return portOf(l)
}

// pack writes the package.
func (r *packageRegistry) pack(from string) error {
	text, err := os.ReadFile(filepath.Join(from, "package.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &r.document); err != nil {
		return err
	}
	for _, key := range []string{"dependencies", "optionalDependencies", "peerDependencies", "bundleDependencies", "bundledDependencies", "devDependencies"} {
		delete(r.document, key)
	}
	if text, err = json.Marshal(r.document); err != nil {
		return err
	}
	to, err := os.Create(r.file)
	if err != nil {
		return err
	}
	defer to.Close()
	sum := sha512.New()
	w := tar.NewWriter(io.MultiWriter(to, sum))
	if err := packFiles(w, from, text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	r.sum = "sha512-" + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	return nil
}

// packFiles writes the files of a package, with this package.json.
func packFiles(w *tar.Writer, from string, document []byte) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		name, bad := filepath.Rel(from, path)
		switch {
		case err != nil || bad != nil:
			return fmt.Errorf("%w %w", err, bad)
		case leftOut[name]:
			return fs.SkipDir
		case !d.Type().IsRegular() || filepath.Ext(name) == ".map":
			return nil
		}
		content := document
		if name != "package.json" {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		if err := w.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
}

// ServeHTTP implements http.Handler.
func (r *packageRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch request.URL.Path {
	case "/openclaw":
		version := map[string]any{"hasInstallScript": true, "dist": map[string]any{"tarball": "http://" + request.Host + "/openclaw.tgz", "integrity": r.sum}}
		maps.Copy(version, r.document)
		number, _ := r.document["version"].(string)
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "openclaw", "dist-tags": map[string]any{"latest": number}, "versions": map[string]any{number: version}})
	case "/openclaw.tgz":
		http.ServeFile(w, request, r.file)
	default:
		http.NotFound(w, request)
	}
}
