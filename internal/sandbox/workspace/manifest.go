package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
)

const (
	// MaxManifestBytes is far more than seven entries need.
	MaxManifestBytes = 64 << 10
	manifestVersion  = 1
)

// manifest is what was seeded into a copy. It is the only witness of what the
// copy looked like before the agent worked in it, so a damaged one is an error.
type manifest struct {
	Version  int                  `json:"version"`
	ScopeKey string               `json:"scopeKey,omitempty"` // of the sandbox that the copy was made for
	Files    map[string]seedEntry `json:"files"`
}

// seedEntry is one file as it was when it was copied.
type seedEntry struct {
	SHA256   string    `json:"sha256"`
	Size     int64     `json:"size"`
	SeededAt time.Time `json:"seededAt"`
}

func newManifest() *manifest {
	return &manifest{Version: manifestVersion, Files: map[string]seedEntry{}}
}

func newEntry(data []byte) seedEntry {
	return seedEntry{SHA256: digest(data), Size: int64(len(data)), SeededAt: time.Now().UTC().Truncate(time.Millisecond)}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// loadManifest reads the manifest; an empty one if nothing was ever seeded.
func (v *lockedRoot) loadManifest() (*manifest, error) {
	data, err := v.readRecord(v.layout.Slug+".json", MaxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return newManifest(), nil
	}
	var m *manifest
	if err == nil {
		m, err = decodeManifest(data)
	}
	if err != nil {
		path := filepath.Join(v.layout.Root, privateName, manifestsName, v.layout.Slug+".json")
		return nil, errhint.With(fmt.Errorf("seed manifest %s: damaged: %w", path, reason(err)),
			"Restore the file, or remove it: seed files that differ from the agent workspace then count as changed, and nothing is lost.")
	}
	return m, nil
}

func decodeManifest(data []byte) (*manifest, error) {
	var m manifest
	if err := json.Unmarshal(data, &m, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	return &m, m.check()
}

func (m *manifest) check() error {
	if m.Version != manifestVersion || m.Files == nil {
		return fmt.Errorf("version %d with %d files, want version %d", m.Version, len(m.Files), manifestVersion)
	}
	for name, e := range m.Files {
		sum, err := hex.DecodeString(e.SHA256)
		if err != nil || len(sum) != sha256.Size || e.Size < 0 || e.Size > MaxSeedBytes || !slices.Contains(seedNames(), name) {
			return fmt.Errorf("no seed file was ever recorded like %q", name)
		}
	}
	return nil
}

func (v *lockedRoot) saveManifest(m *manifest) error {
	data, err := json.Marshal(m, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return v.writeRecord(v.layout.Slug+".json", append(data, '\n'))
}

func (v *lockedRoot) readRecord(name string, limit int64) ([]byte, error) {
	if v.private == nil {
		return nil, fs.ErrNotExist
	}
	return hostpath.ReadRegularBeneath(v.private, filepath.Join(manifestsName, name), limit)
}

// writeRecord replaces a file of .atoll at once or not at all.
func (v *lockedRoot) writeRecord(name string, data []byte) error {
	dir, err := v.openPart(manifestsName)
	if err != nil {
		return err
	}
	defer closeAll(dir)
	if _, err := hostpath.WriteBeneath(dir, name, bytes.NewReader(data), hostpath.WriteOptions{Replace: true}); err != nil {
		return rootError(v.layout, err)
	}
	return nil
}

// forget removes what is recorded of the copy.
func (v *lockedRoot) forget() error {
	dir, err := v.openPart(manifestsName)
	if err != nil {
		return err
	}
	defer closeAll(dir)
	return errors.Join(unlinkAt(dir, v.layout.Slug+".json"), unlinkAt(dir, v.layout.Slug+skillsSuffix), v.unmarkTemporary())
}
