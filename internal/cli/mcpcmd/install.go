package mcpcmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/mcpcmd/clientfile"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

const (
	// maxFile bounds the configuration of a client.
	maxFile = 16 << 20
	// maxDiff bounds the difference that is shown.
	maxDiff = 64 << 10
)

// fileOptions are the flags of the verbs that change a client's configuration.
type fileOptions struct {
	user, force, asJSON bool
}

func (o *fileOptions) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.user, "user", false, "change your own configuration of the client, which holds in every project")
	cmd.Flags().BoolVar(&o.force, "force", false, "do not ask")
	console.JSONFlag(cmd, &o.asJSON)
	cmd.ValidArgs = clientNames()
}

func newInstallCommand(e *env) *cobra.Command {
	var o fileOptions
	cmd := &cobra.Command{
		Use:   "install CLIENT",
		Short: "Add this server to the configuration of claude, codex, cursor or vscode",
		Long: `Add this server to the configuration of a client: claude (.mcp.json), codex (.codex/config.toml),
cursor (.cursor/mcp.json) or vscode (.vscode/mcp.json), in this directory, or with --user of all projects.
The change is shown first and made only after a yes, or with --force. The rest of the file stays as it is; a
file that cannot be read is refused.`,
		Example: "  atoll mcp install claude\n  atoll mcp install codex --user --force",
		Args:    console.ExactlyOne("client"),
		RunE: func(_ *cobra.Command, args []string) error {
			entry, err := newEntry()
			if err != nil {
				return err
			}
			return e.change(args[0], &o, entry)
		},
	}
	o.add(cmd)
	return cmd
}

func newUninstallCommand(e *env) *cobra.Command {
	var o fileOptions
	cmd := &cobra.Command{
		Use:     "uninstall CLIENT",
		Short:   "Remove this server from the configuration of a client",
		Example: "  atoll mcp uninstall claude\n  atoll mcp uninstall codex --user --force",
		Args:    console.ExactlyOne("client"),
		RunE:    func(_ *cobra.Command, args []string) error { return e.change(args[0], &o, nil) },
	}
	o.add(cmd)
	return cmd
}

// change writes the configuration of a client with the server, or without it if the entry
// is nil.
func (e *env) change(name string, o *fileOptions, entry *clientfile.Entry) error {
	c, ok := clients()[name]
	if !ok {
		return console.WithCode(console.ExitUsage, errhint.With(fmt.Errorf("client %q is not known", name), "use "+strings.Join(clientNames(), ", ")))
	}
	path, err := e.fileOf(&c, o.user)
	if err != nil {
		return err
	}
	before, err := readFile(path)
	if err != nil {
		return err
	}
	after, err := c.edit(before, entry)
	if err != nil {
		return errhint.With(fmt.Errorf("%s: %w", path, err), "mend the file, or change it by hand: docs/mcp.md shows what belongs there")
	}
	return e.write(path, before, after, o)
}

func (e *env) fileOf(c *client, ofUser bool) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	home, err := os.UserHomeDir()
	if err != nil && ofUser {
		return "", err
	}
	return c.file(dir, home, ofUser, e.Getenv), nil
}

// readFile reads the configuration of a client; one that is not there is empty.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return text, err
}

// write shows a change and makes it when the person agrees.
func (e *env) write(path string, before, after []byte, o *fileOptions) error {
	isSame := bytes.Equal(before, after)
	change := diff.Unified(path, path, before, after, maxDiff)
	if !o.asJSON {
		fmt.Fprint(e.ForeignOut(), change)
	}
	switch {
	case isSame && !o.asJSON:
		fmt.Fprintln(e.Out, console.Printable(path)+" is as it should be")
		return nil
	case isSame:
	case !o.force && (o.asJSON || !e.Agrees("Write it?")):
		return console.WithCode(console.ExitDenied, errhint.With(errors.New("nothing was changed"), "give --force to write the file"))
	default:
		if err := console.ReplaceOwn(path, after, 0o644); err != nil {
			return err
		}
	}
	if o.asJSON {
		return e.PrintJSON(map[string]any{"file": path, "changed": !isSame, "diff": change})
	}
	return nil
}
