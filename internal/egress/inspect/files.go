package inspect

import (
	"bytes"
	"encoding/pem"
	"os"
	"path"
	"slices"
)

// File is a file that a sandbox gets, to be readable by all inside.
type File struct {
	Name string
	Data []byte
}

// The files of a sandbox: its CA, its CA with the roots of the host, these as Java
// reads them, and settings of wget.
const (
	certificateFile = "atoll-ca.pem"
	bundleFile      = "bundle.pem"
	javaFile        = "bundle.jks"
	wgetFile        = "wgetrc" // wget reads no variable for certificates
)

// systemBundles are where systems keep their roots. The first that exists is used.
var systemBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// Files returns the files that make programs inside trust the sandbox's CA, for a
// directory of the sandbox. None of them holds the key.
func (i *Inspector) Files(dir string) ([]File, error) {
	certificate := i.authority.PEM()
	bundle := i.Bundle()
	store, err := javaStore(certificates(bundle), i.authority.certificate.NotBefore)
	wget := []byte("ca_certificate = " + path.Join(dir, bundleFile) + "\n")
	return []File{{certificateFile, certificate}, {bundleFile, bundle}, {javaFile, store}, {wgetFile, wget}}, err
}

// Bundle returns the certificates that programs inside trust, as PEM: those of this host
// and the CA.
func (i *Inspector) Bundle() []byte {
	return append(append(hostRoots(), i.companyRoots()...), i.authority.PEM()...)
}

// hostRoots returns the roots of this host as PEM; nothing if it has none.
func hostRoots() []byte {
	for _, file := range append([]string{os.Getenv("SSL_CERT_FILE")}, systemBundles...) {
		if text, err := os.ReadFile(file); err == nil && len(certificates(text)) > 0 {
			return append(bytes.TrimRight(text, "\n"), '\n')
		}
	}
	return nil
}

// companyRoots returns the certificates that this host trusts beside the system's.
func (i *Inspector) companyRoots() []byte {
	if i.options.Host == nil || i.options.Host.CAFile() == "" {
		return nil
	}
	text, err := os.ReadFile(i.options.Host.CAFile())
	if err != nil {
		return nil
	}
	return append(bytes.TrimRight(text, "\n"), '\n')
}

// certificates returns the certificates of a PEM text.
func certificates(text []byte) [][]byte {
	var all [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			all = append(all, block.Bytes)
		}
	}
	return slices.Clip(all)
}

// Environment returns the variables by which programs find the files, in a directory
// of the sandbox.
func Environment(dir string) map[string]string {
	variables := map[string]string{
		"NODE_EXTRA_CA_CERTS": path.Join(dir, certificateFile), // beside those that Node has
		"SYSTEM_WGETRC":       path.Join(dir, wgetFile),
		"JAVA_TOOL_OPTIONS":   "-Djavax.net.ssl.trustStore=" + path.Join(dir, javaFile) + " -Djavax.net.ssl.trustStoreType=JKS -Djavax.net.ssl.trustStorePassword=" + javaPassword,
	}
	for _, name := range []string{
		"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE", "DENO_CERT",
	} {
		variables[name] = path.Join(dir, bundleFile)
	}
	return variables
}
