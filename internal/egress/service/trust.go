package service

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path"

	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/outbound"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// trustDir is the directory inside that has certificates.
	trustDir = "/tmp/.atoll-egress"
	// nodeFile has the certificates that Node is to trust beside its own.
	nodeFile     = "node.pem"
	nodeVariable = "NODE_EXTRA_CA_CERTS"
	// maxCertificates bounds a file of certificates.
	maxCertificates = 4 << 20
)

// writeCertificates puts certificates where programs inside look for them: that of the
// sandbox's CA if rules have TLS opened, and those that the host itself trusts beside the
// system's. It returns the variables by which they are found.
func (e *Egress) writeCertificates(ctx context.Context, i *inspect.Inspector, host *outbound.Host, inspects bool) (env map[string]string, err error) {
	env, extra := map[string]string{}, e.service.extraCertificates(host)
	var files []inspect.File
	if inspects {
		if files, err = i.Files(trustDir); err != nil {
			return nil, err
		}
		maps.Copy(env, inspect.Environment(trustDir))
		extra = append(extra, files[0].Data...)
	}
	if len(extra) > 0 {
		files = append(files, inspect.File{Name: nodeFile, Data: extra})
		env[nodeVariable] = path.Join(trustDir, nodeFile)
	}
	return env, writeTrust(ctx, e.box, files)
}

// writeTrust writes files of certificates inside.
func writeTrust(ctx context.Context, box *sandbox.Handle, files []inspect.File) error {
	if len(files) == 0 {
		return nil
	}
	inside, err := guestfs.New(box.Machine, []guestfs.Root{{Path: path.Dir(trustDir)}})
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := inside.Write(ctx, path.Join(trustDir, f.Name), f.Data, &guestfs.WriteOptions{Mode: 0o644, MkdirAll: true}); err != nil {
			return fmt.Errorf("certificates of egress: %w", err)
		}
	}
	return nil
}

// extraCertificates are what programs of this host trust beside the system's roots, as a
// company's own authority: Node reads only these of a host.
func (s *Service) extraCertificates(host *outbound.Host) []byte {
	var all []byte
	for _, file := range []string{s.Getenv(nodeVariable), host.CAFile()} {
		all = append(all, certificatesOf(file)...)
	}
	return all
}

// certificatesOf returns the certificates of a file, and nothing else that it holds.
func certificatesOf(file string) []byte {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxCertificates))
	if err != nil {
		return nil
	}
	var found bytes.Buffer
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			_ = pem.Encode(&found, &pem.Block{Type: block.Type, Bytes: block.Bytes})
		}
	}
	return found.Bytes()
}
