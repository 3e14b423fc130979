package provide

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// installationForm is that of rand.Text.
var installationForm = lazyregexp.Word{First: "A-Z2-7", Rest: "A-Z2-7", Most: installationLength}

const installationLength = 26

const (
	installationFile = "installation"
	installationFact = "installation" // in the database
)

// beginInstallation gives a state directory without a database a new id, if it
// has none.
func beginInstallation(state string) error {
	if _, err := os.Stat(filepath.Join(state, databaseFile)); err == nil {
		return nil
	}
	if err := writeNew(filepath.Join(state, installationFile), rand.Text()+"\n"); err != nil {
		return fmt.Errorf("installation id: %w", err)
	}
	return nil
}

// identify sets the id of this state directory: only sandboxes that carry it are
// ours. The file has it, and the database a copy, so that losing one of the two
// does not make every sandbox another program's.
func (a *Installation) identify(ctx context.Context) (err error) {
	if a.ID, err = installationID(a.Paths.AtollState); errors.Is(err, fs.ErrNotExist) {
		err = a.identifyAgain(ctx)
	}
	if err != nil {
		return err
	}
	known, err := a.Registry.Fact(ctx, installationFact)
	if err != nil || known == a.ID {
		return err
	}
	return a.Registry.SetFact(ctx, installationFact, a.ID)
}

// identifyAgain writes the file that is missing: with the id of the database, or
// with a new one if there are no sandboxes that carry another.
func (a *Installation) identifyAgain(ctx context.Context) error {
	id, err := a.Registry.Fact(ctx, installationFact)
	if err != nil {
		return err
	}
	if id == "" {
		if n, err := a.Registry.Count(ctx); err != nil {
			return err
		} else if n > 0 {
			return errhint.With(fmt.Errorf("installation id: %s is missing, and %d sandboxes carry it", filepath.Join(a.Paths.AtollState, installationFile), n),
				"restore the file from a backup, or write into it the label "+sandbox.LabelInstallation+" of one of the sandboxes")
		}
		id = rand.Text()
	}
	if err := writeNew(filepath.Join(a.Paths.AtollState, installationFile), id+"\n"); err != nil {
		return fmt.Errorf("installation id: %w", err)
	}
	a.ID, err = installationID(a.Paths.AtollState)
	return err
}

// installationID reads the file. It returns an error that wraps fs.ErrNotExist if
// there is none.
func installationID(state string) (string, error) {
	path := filepath.Join(state, installationFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("installation id: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if len(id) != installationLength || !installationForm.MatchString(id) {
		return "", errhint.With(fmt.Errorf("installation id: %s does not hold one", path),
			"remove the file: the id is taken from the database again; or restore it from a backup")
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
