package vmcmd

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/json5/edit"
	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/terminal"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

// initFlags are the flags of `atoll vm init`.
type initFlags struct {
	project, vault, mode string
	yes                  bool
}

func (c *command) newInit() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use: "init", Short: "Write a profile into the configuration file", Args: cobra.NoArgs,
		Example: "  atoll vm init --project ~/Projects/shop --yes",
		Long: `Write a profile into the configuration file. It asks for the project only, guesses the rest
from what is there, and shows what it will change in the file before it does.
Everything else in the file stays as it is, comments too.`,
		RunE: func(*cobra.Command, []string) error { return c.init(&f) },
	}
	cmd.Flags().StringVar(&f.project, "project", "", "`directory` of the project")
	cmd.Flags().StringVar(&f.vault, "vault", "", "`directory` of a vault of notes")
	cmd.Flags().StringVar(&f.mode, "mode", "", "how the project is worked on: `overlay`, auto or direct")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "ask nothing")
	return cmd
}

func (c *command) init(f *initFlags) error {
	file, env, err := c.load()
	if err != nil {
		return err
	}
	path := file.Path()
	if path == "" || filepath.Base(path) == "openclaw.json" { // OpenClaw's file is not ours to write
		paths, err := env.Paths()
		if err != nil {
			return err
		}
		path = filepath.Join(paths.AtollState, "atoll.json5")
	}
	in := bufio.NewReader(c.In)
	if err := c.ask(in, f, env.Cwd); err != nil {
		return err
	}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	after, err := c.profileText(before, f)
	if err != nil {
		return err
	}
	if _, err := config.Parse(path, after, env); err != nil {
		return err
	}
	return c.write(in, path, before, after, f.yes)
}

// ask asks for what cannot be guessed.
func (c *command) ask(in *bufio.Reader, f *initFlags, cwd string) error {
	if f.project == "" && f.yes {
		return errhint.With(errors.New("no project is named"), "give --project DIRECTORY")
	}
	if f.project == "" {
		answer, err := c.question(in, fmt.Sprintf("Directory of the project [%s]: ", cwd))
		if err != nil {
			return err
		}
		f.project = cmp.Or(answer, cwd)
	}
	if rest, ok := strings.CutPrefix(f.project, "~/"); ok {
		f.project = filepath.Join(c.Home, rest)
	}
	project, err := filepath.Abs(f.project)
	f.project = project
	return err
}

// question prints a question and reads a line.
func (c *command) question(in *bufio.Reader, text string) (string, error) {
	fmt.Fprint(c.Err, text)
	line, err := in.ReadString('\n')
	if err != nil {
		return "", errhint.With(errors.New("nobody answered"), "give --yes with --project DIRECTORY")
	}
	return strings.TrimSpace(line), nil
}

// profileText returns the file with the profile in it.
func (c *command) profileText(before []byte, f *initFlags) ([]byte, error) {
	text := before
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("// Atoll's configuration; docs/config.md explains the keys.\n{\n}\n")
	}
	name := cmp.Or(c.profile, vmkeys.DefaultName)
	var err error
	for _, set := range c.guess(f) {
		if text, err = edit.Set(text, append([]string{"vm", "profiles", name}, set.path...), set.value); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// maxDiff is how much of a change is shown.
const maxDiff = 64 << 10

// setting is a key of a profile.
type setting struct {
	path  []string
	value any
}

// guess returns what was named, and what is found in its usual place.
func (c *command) guess(f *initFlags) []setting {
	list := []setting{{[]string{"mounts", "project"}, f.project}}
	if f.vault != "" {
		list = append(list, setting{[]string{"mounts", "vault"}, f.vault})
	}
	for _, found := range []struct {
		name string
		path []string
	}{
		{".openclaw", []string{"mounts", "config"}}, {".openclaw/agents", []string{"mounts", "agentData"}}, {".buildlog", []string{"mounts", "buildlogData"}},
		{".openclaw-secrets.env", []string{"secrets"}},
	} {
		if _, err := os.Stat(filepath.Join(c.Home, found.name)); err == nil {
			list = append(list, setting{found.path, "~/" + found.name})
		}
	}
	if f.mode != "" {
		list = append(list, setting{[]string{"mode"}, f.mode})
	}
	return list
}

// write shows the change, asks, and writes the file as a whole.
func (c *command) write(in *bufio.Reader, path string, before, after []byte, yes bool) error {
	if bytes.Equal(before, after) {
		_, err := fmt.Fprintf(terminal.Harmless(c.Err), "%s has this profile already\n", path)
		return err
	}
	fmt.Fprint(terminal.Harmless(c.Out), diff.Unified(path, path, before, after, maxDiff))
	if !yes {
		answer, err := c.question(in, "Write it? [y/N] ")
		if err != nil {
			return err
		}
		if !strings.EqualFold(answer, "y") {
			return errors.New("nothing was written")
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", after, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
