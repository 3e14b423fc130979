package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// file is one file of what a build starts from.
type file struct {
	name string
	data []byte
}

// contextFiles are the Dockerfile and what it copies. Stages that download have
// use for the authorities that this machine trusts, which may include a
// company's own; nothing of such a stage is in the image.
func contextFiles(dockerfile string, added map[string]string, lockfile []byte) []file {
	files := []file{{dockerfileName, []byte(dockerfile)}}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		files = append(files, file{path.Join(filesDir, name), []byte(added[name])})
	}
	if len(lockfile) > 0 {
		files = append(files, file{"pnpm-lock.yaml", lockfile})
	}
	if strings.Contains(dockerfile, authorities) {
		if trusted := trusted(os.Getenv); len(trusted) > 0 {
			files = append(files, file{authorities, trusted})
		}
	}
	return files
}

const (
	authorities    = "ca.crt"
	systemBundle   = "/etc/ssl/certs/ca-certificates.crt"
	maxAuthorities = 4 << 20
)

// trusted is the bundle of authorities that this machine uses. Without one a
// build trusts what its base image does.
func trusted(getenv func(string) string) []byte {
	f, err := os.Open(cmp.Or(getenv("SSL_CERT_FILE"), systemBundle))
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	bundle, err := io.ReadAll(io.LimitReader(f, maxAuthorities+1))
	if err != nil || len(bundle) > maxAuthorities || !bytes.Contains(bundle, []byte("-----BEGIN CERTIFICATE-----")) || bytes.Contains(bundle, []byte("PRIVATE KEY")) {
		return nil
	}
	return bundle
}

// packContext makes the tar that a build starts from.
func packContext(files []file) (io.Reader, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: FileMode(string(f.data)), Size: int64(len(f.data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	return &packed, w.Close()
}
