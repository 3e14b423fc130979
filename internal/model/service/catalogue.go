package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/run/openclaw"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// modelCatalogue is the file in the state directory that lists the models which
// agents in sandboxes are told of.
const modelCatalogue = "models.json"

// ModelSync says where a catalogue comes from, and what becomes of it.
type ModelSync struct {
	// List is a LiteLLM configuration; nil asks Provider, "" being the only
	// LiteLLM that is configured.
	List     io.Reader
	Provider string
	Mode     openclaw.Mode
	DryRun   bool
}

// SyncedModels is what SyncModels found and did.
type SyncedModels struct {
	Source  string
	Path    string
	Written bool
	Part    []byte // of an openclaw.json
	Count   int
	Change  openclaw.Change
}

// SyncModels brings the installation's catalogue of models up to date.
func (a *Service) SyncModels(ctx context.Context, o ModelSync) (*SyncedModels, error) {
	list, source, err := a.readModels(ctx, o)
	if err != nil {
		return nil, err
	}
	before, err := a.ModelCatalogue()
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errCatalogue) { // a spoilt one is written anew
		return nil, err
	}
	if o.List == nil {
		list = openclaw.Known(list, a.modelInfo(ctx, o.Provider), before)
	}
	s := &SyncedModels{Source: source, Path: a.cataloguePath(), Count: len(list), Change: openclaw.Compare(before, list)}
	if s.Part, err = openclaw.Catalogue(o.Mode, list); err != nil || o.DryRun {
		return s, err
	}
	if err := provide.ReplaceFile(s.Path, s.Part); err != nil {
		return nil, fmt.Errorf("catalogue of models: %w", err)
	}
	s.Written = true
	return s, nil
}

func (a *Service) cataloguePath() string { return filepath.Join(a.Paths.AtollState, modelCatalogue) }

var errCatalogue = errors.New("the catalogue of models cannot be used")

// ModelCatalogue returns the models of the installation's catalogue; fs.ErrNotExist
// if there is none.
func (a *Service) ModelCatalogue() ([]openclaw.Model, error) {
	f, err := os.Open(a.cataloguePath())
	if err != nil {
		return nil, errhint.With(fmt.Errorf("catalogue of models: %w", err), "make one with `atoll models sync`")
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, openclaw.MaxCatalogue+1))
	if err != nil {
		return nil, fmt.Errorf("catalogue of models: %w", err)
	}
	list, err := openclaw.ReadCatalogue(text)
	if err != nil {
		return nil, errhint.With(fmt.Errorf("%s: %w: %w", a.cataloguePath(), errCatalogue, err), "make it anew with `atoll models sync`")
	}
	return list, nil
}

func (a *Service) readModels(ctx context.Context, o ModelSync) (list []openclaw.Model, source string, err error) {
	if o.List != nil {
		text, err := io.ReadAll(io.LimitReader(o.List, openclaw.MaxCatalogue+1))
		if err != nil {
			return nil, "", fmt.Errorf("model list: %w", err)
		}
		list, err = openclaw.FromYAML(text)
		return list, "a LiteLLM configuration", err
	}
	provider, err := a.modelProvider(o.Provider)
	if err != nil {
		return nil, "", err
	}
	client, err := litellmFor(a.Settings, provider, provider.Keys[0])
	if err != nil {
		return nil, "", err
	}
	text, err := client.Models(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("provider %s: %w", provider.Name, err)
	}
	list, err = openclaw.FromList(text)
	return list, provider.URL + "/v1/models", err
}

// modelInfo is what LiteLLM says of its models besides their names; nil if it does
// not: that is for keys of its own.
func (a *Service) modelInfo(ctx context.Context, name string) []byte {
	provider, err := a.modelProvider(name)
	if err != nil {
		return nil
	}
	client, err := litellmFor(a.Settings, provider, provider.Admin)
	if err != nil {
		return nil
	}
	info, err := client.ModelInfo(ctx)
	if err != nil {
		a.Logger.InfoContext(ctx, "LiteLLM says nothing of the sizes of its models", "provider", provider.Name, "error", err)
		return nil
	}
	return info
}

// modelProvider is the provider of a name, or the one that is a LiteLLM.
func (a *Service) modelProvider(name string) (*config.LLMProvider, error) {
	llm, err := a.Config.LLM()
	if err != nil {
		return nil, err
	}
	var fit []*config.LLMProvider
	var names []string
	for i := range llm.Providers {
		p := &llm.Providers[i]
		names = append(names, p.Name)
		if p.Name == name || name == "" && p.Kind == "litellm" {
			fit = append(fit, p)
		}
	}
	if len(fit) != 1 || len(fit[0].Keys) == 0 {
		slices.Sort(names)
		return nil, errhint.With(fmt.Errorf("models: %d providers fit %q", len(fit), name), fmt.Sprintf("choose one with --provider: %q", names))
	}
	return fit[0], nil
}

// KnownModels lists the models of the installation's catalogue, or else those that
// the configuration names. One that is not listed can still be asked for.
func (a *Service) KnownModels() (list []openclaw.Model) {
	if list, err := a.ModelCatalogue(); err == nil {
		return list
	}
	cfg, err := a.Config.LLM()
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for _, p := range cfg.Providers {
		for _, id := range p.Models {
			entry, err := openclaw.Entry(id, 0, 0)
			if err == nil && !seen[id] && !strings.HasSuffix(id, "*") {
				list, seen[id] = append(list, entry), true
			}
		}
	}
	return list
}
