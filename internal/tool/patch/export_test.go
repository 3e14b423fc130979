package patch

import "strings"

// Paths lists every path that the patch names, in order.
func (p *Patch) Paths() []string {
	var paths []string
	for _, c := range p.Changes {
		paths = append(paths, c.Path)
		if c.MoveTo != "" {
			paths = append(paths, c.MoveTo)
		}
	}
	return paths
}

// String returns the patch in its plainest form. Parse reads it as the same patch.
func (p *Patch) String() string {
	var b strings.Builder
	b.WriteString(beginPatch + "\n")
	for _, c := range p.Changes {
		c.write(&b)
	}
	b.WriteString(endPatch + "\n")
	return b.String()
}

func (c *Change) write(b *strings.Builder) {
	for marker, kind := range fileMarkers() {
		if kind == c.Kind {
			b.WriteString(marker + " " + c.Path + "\n")
		}
	}
	if c.MoveTo != "" {
		b.WriteString(moveTo + " " + c.MoveTo + "\n")
	}
	for _, line := range c.Content {
		b.WriteString("+" + line + "\n")
	}
	for _, h := range c.Hunks {
		h.write(b)
	}
}

func (h *Hunk) write(b *strings.Builder) {
	if len(h.Headers) == 0 {
		b.WriteString(hunkHeader + "\n")
	}
	for _, header := range h.Headers {
		b.WriteString(hunkHeader + " " + header + "\n")
	}
	for _, line := range h.Lines {
		b.WriteString(string(rune(line.Op)) + line.Text + "\n")
	}
	if h.EndOfFile {
		b.WriteString(endOfFile + "\n")
	}
}
