package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/openclaw"
)

// variants is the registry of agents that a run can be given to.
func (e *Executor) variants(cfg *config.Runs, program string, drive *openclawGateway) ([]run.Variant, error) {
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("our own program: %w", err)
		}
	}
	claw, err := e.openclawVariant(&cfg.OpenClaw)
	if cfg.OpenClaw.Gateway != nil {
		claw, err = drive.variant()
	}
	if err != nil {
		return nil, err
	}
	list := []run.Variant{run.Agent(run.AgentOptions{Program: program}), claw}
	for i := range cfg.Variants {
		v, err := customVariant(&cfg.Variants[i])
		if err != nil {
			return nil, fmt.Errorf("runs.variants.%s: %w", cfg.Variants[i].ID, err)
		}
		if _, err := run.Find(list, v.ID); err == nil {
			return nil, fmt.Errorf("runs.variants.%s: there is an agent of this id already", v.ID)
		}
		list = append(list, v)
	}
	return e.withExternals(list, cfg.External)
}

// withExternals adds the agents of other services.
func (e *Executor) withExternals(list []run.Variant, externals []config.External) ([]run.Variant, error) {
	for _, x := range externals {
		if _, err := run.Find(list, x.ID); err == nil {
			return nil, fmt.Errorf("runs.external.%s: there is an agent of this id already", x.ID)
		}
		external := run.External{ID: x.ID, Name: x.Name, Description: x.Description, URL: x.URL, Private: x.Private, Timeout: time.Duration(x.Timeout) * time.Second}
		if x.HasToken {
			source, err := e.Settings.KeySource(x.Token)
			if err != nil {
				return nil, fmt.Errorf("runs.external.%s.token: %w", x.ID, err)
			}
			external.Token = func(ctx context.Context) (string, error) {
				token, err := source.Read(ctx)
				return token.Reveal(), err
			}
		}
		list = append(list, external.Variant())
	}
	return list, nil
}

// openclawNew is the first release whose configuration names agents by id, and
// which reads a message from a file.
const openclawNew = "2026.3"

func (e *Executor) openclawVariant(c *config.RunsOpenClaw) (run.Variant, error) {
	version := c.Version
	if c.Install != "" {
		var err error
		if version, err = installedOpenClaw(c.Install); err != nil {
			return run.Variant{}, errhint.With(fmt.Errorf("runs.openclaw.install: %w", err), "install it with npm: the directory must hold node_modules with node and openclaw")
		}
	}
	o := run.OpenClawOptions{Image: c.Image, Install: c.Install, Models: e.models.KnownModels()}
	if version == "" || !earlier(version, openclawNew) {
		o.Agents, o.MessageFile = openclaw.Entries, true
	}
	v := run.OpenClaw(o)
	v.Memory = cmp.Or(c.Memory, v.Memory)
	return v, nil
}

// installedOpenClaw is the release of an npm installation.
func installedOpenClaw(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "openclaw", "package.json"))
	if err != nil {
		return "", err
	}
	var about struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &about); err != nil || about.Version == "" {
		return "", errors.Join(errors.New("package.json of openclaw names no version"), err)
	}
	return about.Version, nil
}

// earlier compares releases that are numbered by their date.
func earlier(a, b string) bool {
	var x, y [3]int
	_, _ = fmt.Sscanf(a, "%d.%d.%d", &x[0], &x[1], &x[2])
	_, _ = fmt.Sscanf(b, "%d.%d.%d", &y[0], &y[1], &y[2])
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

// customVariant is an agent of the configuration.
func customVariant(c *config.RunVariant) (run.Variant, error) {
	custom, _ := run.Preset(c.Preset)
	custom.ID = c.ID
	custom.Name, custom.Description = cmp.Or(c.Name, custom.Name), cmp.Or(c.Description, custom.Description)
	custom.Image, custom.User = c.Image, c.User
	if len(c.Argv) > 0 {
		custom.Argv = c.Argv
	}
	if c.Stream != "" {
		custom = custom.WithStream(c.Stream)
	}
	if c.Read != "" {
		custom.Read, custom.Answer, custom.Failure = c.Read, c.Answer, c.Failure
	}
	custom.Timeout, custom.Memory = time.Duration(c.Timeout)*time.Second, c.Memory
	custom.Env, custom.Files = merged(custom.Env, c.Env), merged(custom.Files, c.Files)
	problems := custom.Check()
	for _, b := range policy.SanitizeEnv(policy.EnvRequest{Configured: c.Env}).Blocked {
		problems = append(problems, fmt.Sprintf("env: %s does not enter a sandbox: %s", b.Name, b.Reason))
	}
	if len(problems) > 0 {
		return run.Variant{}, errors.New(strings.Join(problems, "; "))
	}
	v := custom.Variant()
	v.Binds, v.Volumes = c.Binds, c.Volumes
	return v, nil
}

func merged(common, own map[string]string) map[string]string {
	all := maps.Clone(common)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, own)
	return all
}
