package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/pattern"
)

// installationForm is that of rand.Text.
var installationForm = pattern.Word{First: "A-Z2-7", Rest: "A-Z2-7", Most: installationLength}

const installationLength = 26

// installationID identifies this state directory to engines: only sandboxes
// that carry it are ours. It has a file of its own, apart from the database, so
// that a lost database does not make every sandbox a stranger.
func installationID(state string) (string, error) {
	path := filepath.Join(state, "installation")
	if err := writeNew(path, rand.Text()+"\n"); err != nil {
		return "", fmt.Errorf("installation id: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("installation id: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if len(id) != installationLength || !installationForm.MatchString(id) {
		return "", advice.With(fmt.Errorf("installation id: %s does not hold one", path),
			"restore the file from a backup; a new one would make the existing sandboxes strangers")
	}
	return id, nil
}

// writeNew makes the file whole or not at all, and keeps one that is there: the
// content is written under another name and then linked.
func writeNew(path, content string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	temporary := path + "." + rand.Text()
	defer func() { _ = os.Remove(temporary) }() // also what a full disk left of it
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		return err
	}
	if err := os.Link(temporary, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
