package take

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// signedName is the file that says which commit of the host is the signed copy of
// which one of the agent.
const signedName = "signed.json"

// signTime bounds the signing of one commit, for which a person may be asked for a
// passphrase.
const signTime = 5 * time.Minute

func (w *Workspace) loadSigned() (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(w.State, signedName))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	signed := map[string]string{}
	if err := json.Unmarshal(text, &signed); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(w.State, signedName), err)
	}
	return signed, nil
}

// saveSigned writes the copies so that a crash leaves the old file or the new one.
func (w *Workspace) saveSigned(signed map[string]string) error {
	text, err := json.Marshal(signed)
	if err != nil {
		return err
	}
	path := filepath.Join(w.State, signedName)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// signedCommits returns the agent's commits whose signed copies the known commits
// of the host have.
func (w *Workspace) signedCommits(ctx context.Context, repo *git.Repo, known []string) ([]string, error) {
	signed, err := w.loadSigned()
	if err != nil || len(signed) == 0 {
		return nil, err
	}
	there, err := commitsOf(ctx, repo, slices.Concat(slices.Collect(maps.Keys(signed)), slices.Collect(maps.Values(signed))))
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(signed, func(agent, copied string) bool {
		return !slices.Contains(there, agent) || !slices.Contains(there, copied)
	})
	lost, err := repo.Unreached(ctx, slices.Collect(maps.Values(signed)), known)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(signed, func(_, copied string) bool { return slices.Contains(lost, copied) })
	return slices.Collect(maps.Keys(signed)), nil
}

// signAll writes the commits anew with the person's signature, if the person's
// configuration signs commits.
func (w *Workspace) signAll(ctx context.Context, o *Offer, r Request, t *Taken) error {
	if r.Unsigned {
		return nil
	}
	settings, err := w.signSettings(ctx)
	if err != nil || !isTrue(settings["commit.gpgsign"]) {
		return err
	}
	commits, err := o.repo.Commits(ctx, o.Report.Commits)
	if err != nil {
		return err
	}
	signed, err := w.loadSigned()
	if err != nil {
		return err
	}
	for _, c := range commits {
		if t.Head, err = w.signOnce(ctx, o.repo, c, signed, settings); err != nil {
			return errhint.With(fmt.Errorf("sign commit %s: %w", c.ID[:12], err), "nothing was taken; --unsigned takes the commits without a signature")
		}
	}
	t.Signed = true
	return w.saveSigned(signed)
}

// signOnce signs a commit, unless its copy is there.
func (w *Workspace) signOnce(ctx context.Context, repo *git.Repo, c *git.Commit, signed, settings map[string]string) (string, error) {
	if made := signed[c.ID]; made != "" {
		if found, err := repo.Stat(ctx, []string{made}); err != nil || found[0].Type == "commit" {
			return made, err
		}
	}
	made, err := w.sign(ctx, repo, c, signed, settings)
	if err == nil {
		signed[c.ID] = made
	}
	return made, err
}

// sign makes a signed copy of a commit: the same tree, message and author, the
// person as committer.
func (w *Workspace) sign(ctx context.Context, repo *git.Repo, c *git.Commit, signed, settings map[string]string) (string, error) {
	args := []string{"--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "i18n.commitEncoding=" + cmp.Or(c.Encoding, "UTF-8")}
	for key, value := range settings {
		args = append(args, "-c", key+"="+value)
	}
	args = append(args, "commit-tree", "-S", c.Tree)
	for _, parent := range c.Parents {
		args = append(args, "-p", cmp.Or(signed[parent], parent))
	}
	env := append(w.personEnv(), "GIT_DIR="+repo.Dir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_AUTHOR_NAME="+c.Author.Name, "GIT_AUTHOR_EMAIL="+c.Author.Email, "GIT_AUTHOR_DATE="+dateOf(c.Author),
		"GIT_COMMITTER_NAME="+cmp.Or(settings["user.name"], c.Committer.Name), "GIT_COMMITTER_EMAIL="+cmp.Or(settings["user.email"], c.Committer.Email), "GIT_COMMITTER_DATE="+dateOf(c.Committer))
	out, err := runPerson(ctx, env, c.Message, append([]string{"git"}, args...)...)
	id := strings.TrimSpace(out)
	if err == nil && !checkout.IsID(id) {
		err = fmt.Errorf("git commit-tree wrote %.100q", id)
	}
	return id, err
}

func dateOf(p git.Person) string { return fmt.Sprintf("@%d %s", max(p.When, 0), p.Zone) }

// signKeys are the variables that signing needs. Those that name programs are
// taken from the person's own configuration only, not from the repository's.
func signKeys() map[string]bool {
	return map[string]bool{
		"commit.gpgsign": false, "gpg.format": false, "user.signingkey": false, "user.name": false, "user.email": false,
		"gpg.program": true, "gpg.openpgp.program": true, "gpg.ssh.program": true, "gpg.x509.program": true, "gpg.ssh.defaultkeycommand": true,
	}
}

// signSettings reads the person's configuration of signing as git sees it in the
// repository. Reading it executes nothing.
func (w *Workspace) signSettings(ctx context.Context) (map[string]string, error) {
	out, err := runPerson(ctx, w.personEnv(), "", "git", "-c", "safe.directory=*", "--git-dir="+w.Checkout.Dir, "config", "--list", "--show-scope", "-z")
	if err != nil {
		return nil, fmt.Errorf("read how commits are signed: %w", err)
	}
	settings := map[string]string{}
	fields := strings.Split(out, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, _ := strings.Cut(fields[i+1], "\n")
		program, wanted := signKeys()[key]
		if wanted && (!program || fields[i] == "global" || fields[i] == "system") {
			settings[key] = value
		}
	}
	return settings, nil
}

func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// personEnv is the part of the environment by which keys and their agents are
// found.
func (w *Workspace) personEnv() []string {
	from := w.Environ
	if from == nil {
		from = os.Environ()
	}
	env := []string{"GIT_TERMINAL_PROMPT=0", "LC_ALL=C.UTF-8"}
	for _, variable := range from {
		switch name, _, _ := strings.Cut(variable, "="); name {
		case "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "GNUPGHOME", "GPG_TTY", "SSH_AUTH_SOCK", "TERM", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS":
			env = append(env, variable)
		}
	}
	return env
}

// maxPersonOutput bounds what is read of a program of the person.
const maxPersonOutput = 4 << 20

// runPerson runs a program as the person would, outside of every repository.
func runPerson(ctx context.Context, env []string, stdin string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = "/", env, strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = &confined.Bounded{To: &out, Left: maxPersonOutput}, &confined.Bounded{To: &said, Left: maxPersonOutput}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, printable(said.String()))
	}
	return out.String(), nil
}
