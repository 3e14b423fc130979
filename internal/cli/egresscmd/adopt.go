package egresscmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/json5"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

const (
	// maxDiff bounds the difference that is shown.
	maxDiff = 64 << 10
)

func newAdoptCommand(e *env) *cobra.Command {
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Add the rules of atoll egress propose to the configuration file, after a look",
		Long: `Add the rules of atoll egress propose to agents.defaults.sandbox.egress.allow of the configuration
file. The change is shown first, and is made only after a yes, or with --accept. Where the file has no mode
of egress, it becomes enforce.`,
		Example: "  atoll egress adopt\n  atoll egress adopt --accept",
		Args:    console.NoArgs,
		RunE:    func(_ *cobra.Command, _ []string) error { return e.adopt(yes, asJSON) },
	}
	cmd.Flags().BoolVar(&yes, "accept", false, "put the rules in force without asking")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func (e *env) adopt(yes, asJSON bool) error {
	settings, err := e.Load()
	if err != nil {
		return err
	}
	rules, err := proposedRules(settings)
	if err != nil {
		return err
	}
	path := configFile(settings)
	before, err := readConfig(path)
	if err != nil {
		return err
	}
	after, err := insertRules(before, rules)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := e.checkConfig(path, after); err != nil {
		return errhint.With(fmt.Errorf("the rules do not fit into %s: %w", path, err), "add them by hand: "+strings.Join(rules, ", "))
	}
	change := diff.Unified(path, path, before, after, maxDiff)
	if !asJSON {
		fmt.Fprint(e.ForeignOut(), change)
	}
	if !yes && (asJSON || !e.Agrees("Put these rules in force?")) {
		return console.WithCode(console.ExitDenied, errhint.With(errors.New("nothing was changed"), "give --accept to put the rules in force"))
	}
	if err := console.ReplaceOwn(path, append(bytes.TrimSuffix(after, []byte("\n")), '\n'), 0o600); err != nil || !asJSON {
		return err
	}
	return e.PrintJSON(map[string]any{"file": path, "rules": rules, "diff": change})
}

// proposedRules reads the rules of the last propose.
func proposedRules(s *provide.Settings) (rules []string, err error) {
	text, err := os.ReadFile(proposedFile(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errhint.With(errors.New("no rules were proposed"), "run `atoll egress propose` first")
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &rules); err != nil {
		return nil, fmt.Errorf("%s: %w", proposedFile(s), err)
	}
	if len(rules) == 0 {
		return nil, errhint.With(errors.New("the proposal has no rules"), "run a command with `atoll egress learn -- COMMAND`, then `atoll egress propose`")
	}
	for _, r := range rules {
		if err := (&config.Egress{}).AllowRule(r); err != nil {
			return nil, fmt.Errorf("%s: %w", proposedFile(s), err)
		}
	}
	return rules, nil
}

// configFile is the file that rules are added to.
func configFile(s *provide.Settings) string {
	if s.Location.Path != "" {
		return s.Location.Path
	}
	return filepath.Join(s.Paths.AtollState, "atoll.json5")
}

func readConfig(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if len(text) > json5.MaxSize {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, json5.MaxSize)
	}
	return text, err
}

// checkConfig refuses a text that would be no configuration.
func (e *env) checkConfig(path string, text []byte) error {
	environment, err := provide.Environment(provide.LoadOptions{Getenv: e.Getenv, ConfigPath: e.ConfigPath})
	if err != nil {
		return err
	}
	_, err = config.Parse(path, text, environment)
	return err
}
