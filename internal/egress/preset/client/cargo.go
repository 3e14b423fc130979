package client

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/egress/preset"
)

// cargo reads the registries of cargo's configuration, else those that its own
// index cache has: cargo prints the built-in one nowhere.
func (r *reader) cargo(context.Context) preset.Found {
	home := r.getenv("CARGO_HOME")
	if home == "" {
		home = filepath.Join(r.home, ".cargo")
	}
	var addresses []string
	replaced := false
	for _, name := range []string{"config.toml", "config"} {
		more, replaces := cargoRegistries(r.file(filepath.Join(home, name)))
		addresses, replaced = append(addresses, more...), replaced || replaces
	}
	if !replaced {
		addresses = append(addresses, r.cargoCache(filepath.Join(home, "registry", "index"))...)
	}
	f := found("cargo", addresses)
	if f.Err != nil {
		f.Err = fmt.Errorf("%w, and it has fetched nothing on this host yet", f.Err)
	}
	return f
}

// cargoRegistries returns the addresses of sources and registries in a
// configuration of cargo, and whether one takes the place of the built-in one.
func cargoRegistries(text string) (addresses []string, replaced bool) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[] ")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || !strings.HasPrefix(section, "source") && !strings.HasPrefix(section, "registr") {
			continue
		}
		switch key {
		case "replace-with":
			replaced = true
		case "registry", "index":
			value, _, _ = strings.Cut(strings.TrimLeft(value, `"'`), value[:min(1, len(value))])
			addresses = append(addresses, strings.TrimPrefix(value, "sparse+"))
		}
	}
	return addresses, replaced
}

// cargoCache returns the servers of the indexes that cargo has fetched: those
// that the directories are named after, and those of their files.
func (r *reader) cargoCache(dir string) []string {
	var addresses []string
	for _, name := range r.files(dir) {
		i := strings.LastIndexByte(name, '-')
		if i < 0 {
			continue
		}
		addresses = append(addresses, "https://"+name[:i])
		var settings struct {
			Download string `json:"dl"`
		}
		if json.Unmarshal([]byte(r.file(filepath.Join(dir, name, "config.json"))), &settings) == nil {
			download, _, _ := strings.Cut(settings.Download, "{")
			addresses = append(addresses, download)
		}
	}
	return addresses
}
