package sandboxcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// NewCpCommand returns the command `atoll cp`.
func NewCpCommand(c *console.Env) *cobra.Command {
	cmd := newCpCommand(&env{c})
	cmd.Example = `  atoll cp openclaw-sbx-agent-api-q3wz:report.md .
  atoll cp ./data openclaw-sbx-agent-api-q3wz:/workspace/data`
	return cmd
}

func newCpCommand(e *env) *cobra.Command {
	var o console.SubjectFlags
	cmd := &cobra.Command{
		Use:   "cp SOURCE TARGET",
		Short: "Copy files between the host and a sandbox",
		Long: `Copy a file or a directory between the host and a sandbox. One of the two is
inside: [SESSION or NAME]:PATH, or :PATH for the session of the flags. Relative
paths inside start at the workspace. - is an archive on standard input or output.

Only what is below the sandbox's mounts can be reached. Links, pipes and devices
are left out, with a note.`,
		Example: `  atoll sandbox cp :report.md .
  atoll sandbox cp ./data agent:work:main:/workspace/data
  atoll sandbox cp :. - | tar tv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return console.Usage(cmd, fmt.Errorf("a source and a target are needed, %d were given", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			return runCp(cmd, e, o, args)
		},
	}
	o.Add(cmd)
	return cmd
}

func runCp(cmd *cobra.Command, e *env, o console.SubjectFlags, args []string) error {
	ctx := cmd.Context()
	fromName, from, fromInside := splitInside(args[0])
	toName, to, toInside := splitInside(args[1])
	if fromInside == toInside {
		return console.Usage(cmd, fmt.Errorf("one of source and target must be inside a sandbox (:PATH) and the other not"))
	}
	session, err := e.sessionNamed(ctx, o, fromName+toName)
	if err != nil {
		return err
	}
	defer session.Release()
	stream := struct {
		io.Reader
		io.Writer
	}{e.In, e.Out}
	var skipped []string
	if fromInside {
		skipped, err = session.CopyOut(ctx, provide.Copy{Inside: from, Host: to, Stream: stream})
	} else {
		skipped, err = session.CopyIn(ctx, provide.Copy{Inside: to, Host: from, Stream: stream})
	}
	for _, s := range skipped {
		e.Notice("left out: " + s)
	}
	return err
}

// splitInside takes "NAME:PATH" apart. Names of sessions have colons too: the
// path begins after the last one, or after the first that a slash follows. What
// begins like a path is one of the host.
func splitInside(arg string) (name, path string, inside bool) {
	if arg == provide.Stream || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") {
		return "", arg, false
	}
	at := strings.Index(arg, ":/")
	if at < 0 {
		at = strings.LastIndexByte(arg, ':')
	}
	if at < 0 {
		return "", arg, false
	}
	return arg[:at], arg[at+1:], true
}

// sessionNamed makes the sandbox ready that a name means: a sandbox's own, or a
// session's; "" is the session of the flags.
func (e *env) sessionNamed(ctx context.Context, o console.SubjectFlags, name string) (*provide.ReadySandbox, error) {
	a, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	who := o.Who()
	if name != "" {
		if name, err = pickName(ctx, a, name); err != nil {
			return nil, err
		}
		found, err := a.Find(ctx, name)
		if err != nil {
			return nil, err
		}
		if found.Account == "" {
			found.Account = who.Account
		}
		who = found
	}
	return e.provide(ctx, a, who)
}
