// Package clientconfig writes what OpenSSH's client needs to reach sandboxes: a key of its
// own, the key of the server, and a configuration file whose hosts are sandboxes.
package clientconfig

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/crypto/ssh"
)

// The files of a directory. The keys are those of one person on one machine.
const (
	clientKey = "id_ed25519"
	serverKey = "server_ed25519"
	knownFile = "known_hosts"
	textFile  = "config"
)

// Files is the directory that holds the keys and the configuration.
type Files struct {
	Dir string
	// Server is the key that the server shows, Client the one that may log in.
	Server ssh.Signer
	Client ssh.PublicKey
}

// ErrNone is a directory that Make has not filled yet.
var ErrNone = errors.New("no SSH key has been made yet")

// Load returns the files that Make made.
func Load(dir string) (*Files, error) {
	server, err := readKey(filepath.Join(dir, serverKey))
	if err != nil {
		return nil, err
	}
	client, err := readKey(filepath.Join(dir, clientKey))
	if err != nil {
		return nil, err
	}
	return &Files{Dir: dir, Server: server, Client: client.PublicKey()}, nil
}

// Make makes the keys that are missing and writes the configuration for the program at
// the given path. Several may call it at once.
func Make(dir, program string) (*Files, error) {
	text, err := Text(dir, program)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, name := range []string{serverKey, clientKey} {
		if err := makeKey(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	f, err := Load(dir)
	if err != nil {
		return nil, err
	}
	if err := replace(filepath.Join(dir, clientKey+".pub"), ssh.MarshalAuthorizedKey(f.Client), 0o644); err != nil {
		return nil, err
	}
	known := hostAlias + " " + string(ssh.MarshalAuthorizedKey(f.Server.PublicKey()))
	return f, errors.Join(replace(filepath.Join(dir, knownFile), []byte(known), 0o600), replace(filepath.Join(dir, textFile), []byte(text), 0o600))
}

// readKey reads a private key that nobody else can read.
func readKey(path string) (ssh.Signer, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNone
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s: not a file that only you can read", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// makeKey makes a private key unless there is one. Of several callers the first wins.
func makeKey(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, "atoll")
	if err != nil {
		return err
	}
	draft, err := writeDraft(path, pem.EncodeToMemory(block), 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft) }()
	if err := os.Link(draft, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// writeDraft writes a new file beside path and returns its name.
func writeDraft(path string, content []byte, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// replace writes a file in one step.
func replace(path string, content []byte, mode fs.FileMode) error {
	draft, err := writeDraft(path, content, mode)
	if err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return nil
}
