//go:build linux

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
)

// The names under which programs in a sandbox reach the servers of a test.
const (
	webName   = "web.example.org"
	gitName   = "git.example.org"
	sshName   = "ssh.example.org"
	npmName   = "npm.example.org"
	pipName   = "pip.example.org"
	cargoName = "crates.example.org"
	goName    = "goproxy.example.org"
	aptName   = "apt.example.org"
)

// pages is a web server of fixed answers, by path.
type pages map[string]string

// ServeHTTP implements http.Handler.
func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, ok := p[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if bytes.HasPrefix([]byte(text), []byte("<")) {
		w.Header().Set("Content-Type", "text/html")
	}
	fmt.Fprint(w, text)
}

// registries are those of npm, pip, cargo, go and apt, each with one package, hello.
func registries(t *testing.T) map[string]http.Handler {
	t.Helper()
	return map[string]http.Handler{npmName: npmRegistry(t), pipName: pipIndex(t), cargoName: cargoRegistry(t), goName: goProxy(t), aptName: aptRepository()}
}

func npmRegistry(t *testing.T) pages {
	t.Helper()
	archive := tarball(t, map[string]string{"package/package.json": `{"name": "hello", "version": "1.0.0"}`})
	sum := sha512.Sum512([]byte(archive))
	return pages{
		"/hello": fmt.Sprintf(`{"name": "hello", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "hello", "version": "1.0.0",
  "dist": {"tarball": "https://%s/hello/-/hello-1.0.0.tgz", "integrity": "sha512-%s"}}}}`, npmName, base64.StdEncoding.EncodeToString(sum[:])),
		"/hello/-/hello-1.0.0.tgz": archive,
	}
}

func pipIndex(t *testing.T) pages {
	t.Helper()
	wheel := zipped(t, map[string]string{
		"hello.py": "print('hello')\n", "hello-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n",
		"hello-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "hello-1.0.dist-info/RECORD": "hello.py,,\n",
	})
	const file = "hello-1.0-py3-none-any.whl"
	return pages{
		"/simple/hello/": fmt.Sprintf(`<!DOCTYPE html><html><body><a href="https://%s/files/%s#sha256=%s">%s</a></body></html>`, pipName, file, sha256Of(wheel), file),
		"/files/" + file: wheel,
	}
}

func cargoRegistry(t *testing.T) pages {
	t.Helper()
	crate := tarball(t, map[string]string{"hello-1.0.0/Cargo.toml": "[package]\nname = \"hello\"\nversion = \"1.0.0\"\nedition = \"2018\"\n", "hello-1.0.0/src/lib.rs": ""})
	return pages{
		"/index/config.json":       fmt.Sprintf(`{"dl": "https://%s/dl"}`, cargoName),
		"/index/he/ll/hello":       fmt.Sprintf(`{"name":"hello","vers":"1.0.0","deps":[],"cksum":%q,"features":{},"yanked":false}`+"\n", sha256Of(crate)),
		"/dl/hello/1.0.0/download": crate,
	}
}

func goProxy(t *testing.T) pages {
	t.Helper()
	const module = "module example.org/hello\n"
	return pages{
		"/example.org/hello/@v/list": "v1.0.0\n", "/example.org/hello/@v/v1.0.0.info": `{"Version": "v1.0.0"}`, "/example.org/hello/@v/v1.0.0.mod": module,
		"/example.org/hello/@v/v1.0.0.zip": zipped(t, map[string]string{"example.org/hello@v1.0.0/go.mod": module, "example.org/hello@v1.0.0/hello.go": "package hello\n"}),
	}
}

// aptRepository is a flat one. What apt-get downloads it compares with its hash, and
// does not read.
func aptRepository() pages {
	const archive = "the archive of hello"
	list := fmt.Sprintf("Package: hello\nVersion: 1.0\nArchitecture: all\nMaintainer: test <test@example.org>\nDescription: greets\nFilename: flat/hello_1.0_all.deb\nSize: %d\nSHA256: %s\n",
		len(archive), sha256Of(archive))
	return pages{
		"/flat/Packages": list, "/flat/hello_1.0_all.deb": archive,
		"/flat/Release": fmt.Sprintf("Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n %s %d Packages\n", sha256Of(list), len(list)),
	}
}

func sha256Of(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// plainTar returns a tar archive whose files have the mode 0755.
func plainTar(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))})
		if _, writeErr := w.Write([]byte(files[name])); err != nil || writeErr != nil {
			t.Fatal(err, writeErr)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarball(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(plainTar(t, files)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
