package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

const keyFile = "key"

// loadKey reads the key that signs checkpoints, making it on first use.
func loadKey(dir string) (ed25519.PrivateKey, error) {
	path := filepath.Join(dir, keyFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path); err != nil {
			return nil, fmt.Errorf("key of the audit log: %w", err)
		}
	}
	return readKey(path)
}

// makeKey writes the key under another name and links it, so that it is there
// whole or not at all, and never twice.
func makeKey(path string) error {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails
	temporary := path + "." + rand.Text()
	defer func() { _ = os.Remove(temporary) }()
	if err := os.WriteFile(temporary, []byte(base64.StdEncoding.EncodeToString(seed)+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.Link(temporary, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func readKey(path string) (ed25519.PrivateKey, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("key of the audit log: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, errhint.With(fmt.Errorf("key of the audit log: %s is open to others", path), "run: chmod 600 "+path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("key of the audit log: %w", err)
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, errhint.With(fmt.Errorf("key of the audit log: %s holds none", path), "restore it from a backup; with a new one, older segments cannot be checked")
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// PublicKey returns the key that checks a log's signatures, in base64.
func PublicKey(dir string) (string, error) {
	key, err := readKey(filepath.Join(dir, keyFile))
	if err != nil {
		return "", err
	}
	return encodeKey(key.Public().(ed25519.PublicKey)), nil
}

func encodeKey(key ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(key) }
