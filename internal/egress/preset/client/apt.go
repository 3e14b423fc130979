package client

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/egress/preset"
)

// apt reads the sources of apt on this host.
func (r *reader) apt(context.Context) preset.Found {
	dir := filepath.Join(r.etc, "apt")
	addresses := listSources(r.file(filepath.Join(dir, "sources.list")))
	parts := filepath.Join(dir, "sources.list.d")
	for _, name := range r.files(parts) {
		switch text := r.file(filepath.Join(parts, name)); filepath.Ext(name) {
		case ".list":
			addresses = append(addresses, listSources(text)...)
		case ".sources":
			addresses = append(addresses, stanzaSources(text)...)
		}
	}
	return found("apt", addresses)
}

// listSources returns the addresses of sources of one line each.
func listSources(text string) []string {
	var addresses []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "deb ") && !strings.HasPrefix(line, "deb-src ") {
			continue
		}
		for field := range strings.FieldsSeq(line) {
			if strings.Contains(field, "://") {
				addresses = append(addresses, field)
				break
			}
		}
	}
	return addresses
}

// stanzaSources returns the addresses of sources in deb822 form, without those
// that are switched off.
func stanzaSources(text string) []string {
	var addresses []string
	for stanza := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		var here []string
		enabled := true
		for line := range strings.Lines(stanza) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch strings.ToLower(key) {
			case "uris":
				here = strings.Fields(value)
			case "enabled":
				enabled = !strings.EqualFold(strings.TrimSpace(value), "no")
			}
		}
		if enabled {
			addresses = append(addresses, here...)
		}
	}
	return addresses
}
