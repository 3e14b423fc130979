package vmcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/terminal"
	"github.com/atoll-run/atoll/internal/vm"
)

func (c *command) newShell() *cobra.Command {
	cmd := &cobra.Command{
		Use: "shell [COMMAND…]", Short: "Open a shell inside, in the workspace, or run a command", Example: "  atoll vm shell uname -a",
	}
	cmd.Flags().SetInterspersed(false)
	return c.with(cmd, func(ctx context.Context, m *vm.Manager, args []string) error {
		p, err := m.Command(ctx, args)
		if err != nil {
			return err
		}
		return c.run(ctx, p)
	})
}

func (c *command) newSSH() *cobra.Command {
	cmd := &cobra.Command{Use: "ssh [-- COMMAND…]", Short: "Connect by ssh, as scp and editors do", Example: "  atoll vm ssh -- uptime"}
	cmd.Flags().SetInterspersed(false)
	return c.with(cmd, func(ctx context.Context, m *vm.Manager, args []string) error {
		p, err := m.SSHCommand(ctx, args)
		if err != nil {
			return err
		}
		return c.run(ctx, p)
	})
}

func (c *command) newOnboard() *cobra.Command {
	return c.with(&cobra.Command{
		Use: "onboard", Short: "Run OpenClaw's own set-up inside", Args: cobra.NoArgs, Example: "  atoll vm onboard",
		Long: "Run OpenClaw's own set-up inside, which asks questions. The profile must have openclaw: true.",
	}, func(ctx context.Context, m *vm.Manager, _ []string) error {
		if !m.Profile.OpenClaw {
			return errhint.With(errors.New("OpenClaw is not part of this profile"), "set openclaw: true in it and run `atoll vm up`")
		}
		p, err := m.Command(ctx, []string{"openclaw", "onboard"})
		if err != nil {
			return err
		}
		return c.run(ctx, p)
	})
}

func (c *command) newLogs() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{Use: "logs", Short: "Show what the gateway inside wrote, or why nothing runs", Args: cobra.NoArgs, Example: "  atoll vm logs"}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as more is written")
	return c.with(cmd, func(ctx context.Context, m *vm.Manager, _ []string) error {
		p, file, err := m.LogCommand(ctx, follow)
		switch {
		case err != nil:
			return err
		case file != "":
			return c.tail(file)
		}
		return c.run(ctx, p)
	})
}

// maxLog is how much of Lima's own log is shown.
const maxLog = 64 << 10

// tail prints the end of a file.
func (c *command) tail(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxLog {
		if _, err := f.Seek(-maxLog, io.SeekEnd); err != nil {
			return err
		}
	}
	_, err = io.Copy(terminal.Harmless(c.Out), io.LimitReader(f, maxLog))
	return err
}

// newShow shows the profile with the origin of each value.
func (c *command) newShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "profile", Short: "Show the profile, and where each value comes from", Args: cobra.NoArgs, Example: "  atoll vm profile"}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(*cobra.Command, []string) error {
		m, origins, err := c.open()
		if err != nil {
			return err
		}
		values, err := flatten(m.Profile)
		if err != nil {
			return err
		}
		rows := []value{}
		for _, key := range slices.Sorted(mapsKeys(origins)) {
			rows = append(rows, value{key, values[key], origins[key]})
		}
		return c.showProfile(rows, asJSON)
	}
	return cmd
}

// value is a key of a profile with its value and its origin.
type value struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  string `json:"from"`
}

func (c *command) showProfile(rows []value, asJSON bool) error {
	if asJSON {
		return encode(c.Out, rows)
	}
	return table(c.Out, func(w io.Writer) {
		fmt.Fprintln(w, "KEY\tVALUE\tFROM")
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%v\t%s\n", r.Key, text(r.Value), r.From)
		}
	})
}
