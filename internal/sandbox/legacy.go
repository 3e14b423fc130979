package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/errhint"
)

// maxLegacyFile bounds an old registry file: 10,000 entries are about 3 MiB.
const maxLegacyFile = 32 << 20

// legacyFiles are the registry files of earlier programs, by their place below
// the state directory that held them.
var legacyFiles = []struct {
	path string
	kind Kind
}{
	{"sandbox/containers.json", KindSandbox},
	{"sandbox/browsers.json", KindBrowser},
	{"sandbox-registry.json", KindSandbox},
}

// legacyEntry is an entry as those files write it. Unknown members are left to
// the programs that know them.
type legacyEntry struct {
	ContainerName string `json:"containerName"`
	SessionKey    string `json:"sessionKey"`
	CreatedAtMs   int64  `json:"createdAtMs"`
	LastUsedAtMs  int64  `json:"lastUsedAtMs"`
	Image         string `json:"image"`
	ConfigHash    string `json:"configHash"`
	CDPPort       int    `json:"cdpPort"`
	NoVNCPort     int    `json:"noVncPort"`
}

// ImportLegacy takes the entries of old registry files below dir over, once per
// file. They are listed from then on; their containers carry no label of ours
// and are therefore never started, pruned or removed by us.
func (r *Registry) ImportLegacy(ctx context.Context, dir string) error {
	var all error
	for _, f := range legacyFiles {
		all = errors.Join(all, r.importFile(ctx, filepath.Join(dir, f.path), f.kind))
	}
	return all
}

func (r *Registry) importFile(ctx context.Context, path string, kind Kind) error {
	fact := "imported:" + path
	if done, err := r.Fact(ctx, fact); err != nil || done != "" {
		return err
	}
	entries, err := readLegacy(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return errhint.With(fmt.Errorf("old registry %s: %w", path, err), "repair the file, or move it away; Atoll's own registry was not changed")
	}
	for _, old := range entries {
		if err := r.insertMissing(ctx, old.entry(kind)); err != nil {
			return err
		}
	}
	return r.SetFact(ctx, fact, time.Now().UTC().Format(time.RFC3339))
}

func readLegacy(path string) ([]legacyEntry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxLegacyFile {
		return nil, fmt.Errorf("not a regular file of at most %d MiB", maxLegacyFile>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Entries []legacyEntry `json:"entries"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	for i, e := range file.Entries {
		if e.ContainerName == "" {
			return nil, fmt.Errorf("entries[%d]: containerName is missing", i)
		}
	}
	return file.Entries, nil
}

func (old legacyEntry) entry(kind Kind) *Entry {
	return &Entry{
		ContainerName: old.ContainerName, SessionKey: old.SessionKey,
		CreatedAtMs: old.CreatedAtMs, LastUsedAtMs: old.LastUsedAtMs,
		Image: old.Image, ConfigHash: old.ConfigHash,
		Kind: kind, Phase: PhaseReady, Backend: "docker", AgentID: legacyAgent(old.SessionKey),
		CDPPort: old.CDPPort, NoVNCPort: old.NoVNCPort, Imported: true,
	}
}

// legacyAgent reads the agent out of a scope key of the form agent:<id>[:…].
func legacyAgent(scopeKey string) string {
	rest, ok := strings.CutPrefix(scopeKey, "agent:")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, ":")
	return id
}
