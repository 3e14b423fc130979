package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

func TestManifestIsOutOfTheAgentsReach(t *testing.T) {
	h := newHouse(t)
	write(t, filepath.Join(h.agent, "SOUL.md"), "kind")
	h.prepare()
	text := read(t, h.manifestPath())
	for _, want := range []string{
		`"version": 1`, `"SOUL.md"`, `"size": 4`, `"seededAt": "20`,
		`"sha256": "0b27c158feb36ab18a10ff687909ec730ece6280581dd407e2672359be7725dd"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("manifest lacks %s:\n%s", want, text)
		}
	}
	if strings.HasPrefix(h.manifestPath(), h.copy+"/") {
		t.Error("the manifest lies in the copy")
	}
	info, err := os.Stat(filepath.Dir(filepath.Dir(h.manifestPath())))
	must(t, err)
	same(t, "mode", info.Mode().Perm(), os.FileMode(0o700))
}

func TestDamagedManifestIsRefusedAndNeverEmptied(t *testing.T) {
	const sum = `"0000000000000000000000000000000000000000000000000000000000000000"`
	good := `{"version":1,"files":{"SOUL.md":{"sha256":` + sum + `,"size":1,"seededAt":"2026-11-15T03:45:00Z"}}}`
	for name, damaged := range map[string]string{
		"empty":           "",
		"half":            good[:len(good)/2],
		"not JSON":        "seeded",
		"trailing":        good + "{}",
		"null":            "null",
		"unknown field":   strings.Replace(good, `"size"`, `"more":1,"size"`, 1),
		"other version":   strings.Replace(good, `"version":1`, `"version":2`, 1),
		"duplicate":       strings.Replace(good, `"version":1`, `"version":1,"version":1`, 1),
		"other case":      strings.Replace(good, `"files"`, `"Files"`, 1),
		"no hash":         strings.Replace(good, sum, `"00"`, 1),
		"not a seed file": strings.Replace(good, "SOUL.md", "../SOUL.md", 1),
		"negative size":   strings.Replace(good, `"size":1`, `"size":-1`, 1),
		"too large":       good + strings.Repeat(" ", workspace.MaxManifestBytes),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			seedAll(t, h)
			h.prepare()
			l := h.layout(config.AccessNone)
			write(t, h.manifestPath(), damaged)
			before := snapshot(t, h.root)
			_, prepareErr := workspace.Prepare(t.Context(), l, workspace.Options{})
			_, driftErr := workspace.DriftOf(l)
			_, changesErr := workspace.Changes(t.Context(), l)
			_, reseedErr := workspace.Reseed(t.Context(), l, workspace.Options{}, false)
			for _, err := range []error{prepareErr, driftErr, changesErr, reseedErr} {
				fails(t, err, "seed manifest "+h.manifestPath()+": damaged: ", "remove it: seed files that differ")
			}
			same(t, "what is on disk", snapshot(t, h.root), before)

			// The remedy that the hint names.
			must(t, os.Remove(h.manifestPath()))
			h.prepare()
			drift, err := workspace.DriftOf(l)
			if err != nil || !drift.None() {
				t.Errorf("after the remedy: %+v, %v", drift, err)
			}
		})
	}
}

func TestDiscardHelpsOverADamagedManifest(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	write(t, h.manifestPath(), "{")
	report, err := workspace.Reseed(t.Context(), h.layout(config.AccessNone), workspace.Options{}, true)
	must(t, err)
	same(t, "seeded", len(report.Seeded), 7)
}
