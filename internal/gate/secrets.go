package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/contentpolicy/leaks"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/version"
)

const (
	scansName = "scans.json"
	// scannedAtOnce is how many texts a scanner gets: it reports so many at most.
	scannedAtOnce = leaks.MaxFound
)

// scans is what the scanner found, by the hash of each text, so that a text is
// scanned once. Rules names the scanner and the host's secrets that it looked for.
type scans struct {
	Rules string                  `json:"rules"`
	Found map[string][]leaks.Leak `json:"found"`
}

// judgeSecrets scans names, links and contents.
func (c *collection) judgeSecrets(ctx context.Context) error {
	earlier := c.loadScans()
	now := &scans{Rules: earlier.Rules, Found: map[string][]leaks.Leak{}}
	var fresh []*Entry
	for i := range c.entries {
		e := &c.entries[i]
		if e.Kind == overlay.Deleted {
			continue
		}
		if found, known := earlier.Found[e.textHash()]; known {
			now.Found[e.textHash()] = found
		} else {
			fresh = append(fresh, e)
		}
	}
	for some := range slices.Chunk(fresh, scannedAtOnce) {
		if err := c.scan(ctx, some, now); err != nil {
			return err
		}
	}
	for i := range c.entries {
		for _, leak := range now.Found[c.entries[i].textHash()] {
			c.entries[i].add(ruleSecret, contentpolicy.Blocked, fmt.Sprintf("line %d looks like a secret (%s)", max(1, leak.Line-1), leak.Rule))
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return c.writeJSON(scansName, now)
}

// loadScans reads the findings of an earlier collection, if they are by the same
// rules.
func (c *collection) loadScans() *scans {
	rules := sumOf(fmt.Appendf(nil, "%v\x00%q", version.Current(), c.opt.Known))
	earlier := &scans{}
	if err := c.readJSON(scansName, earlier); err != nil && !errors.Is(err, fs.ErrNotExist) || earlier.Rules != rules {
		return &scans{Rules: rules}
	}
	return earlier
}

// textHash names the text of an entry that is scanned.
func (e *Entry) textHash() string {
	if e.Kind == overlay.Deleted {
		return ""
	}
	return sumOf([]byte(e.Path + "\x00" + e.Link + "\x00" + e.SHA256))
}

// scan scans the texts of entries.
func (c *collection) scan(ctx context.Context, entries []*Entry, into *scans) error {
	scanner, err := leaks.Start(ctx, c.opt.Known...)
	if err != nil {
		return err
	}
	defer scanner.Stop()
	for _, e := range entries {
		text := []byte(e.Path + "\n" + e.Link)
		if e.SHA256 != "" && e.Link == "" {
			data, err := c.staged(e.SHA256)
			if err != nil {
				return err
			}
			text = append(text, data...)
		}
		if err := scanner.Scan(text); err != nil {
			return err
		}
		into.Found[e.textHash()] = nil
	}
	found, err := scanner.Finish()
	for _, text := range found {
		hash := entries[text.Text].textHash()
		into.Found[hash] = append(into.Found[hash], text.Leaks...)
	}
	return err
}
