package github

import (
	"fmt"
	"slices"
	"strings"
)

// What is between these lines of a pull request's text is Atoll's; all else is
// people's. Each run has a part of its own there, the newest first.
const (
	sectionBegin = "<!-- atoll:begin: what is written between these lines is replaced -->"
	sectionEnd   = "<!-- atoll:end -->"
	runMark      = "<!-- atoll:run "
	markEnd      = " -->"
	markStart    = "<!-- atoll:"
)

// part is what one run says.
type part struct{ run, text string }

// withSection is the text of a pull request with the part of a run in it. What
// people wrote stays as it is; of earlier runs as much as there is room for.
func withSection(old string, p *Pull) string {
	before, section, after := splitSection(old)
	parts := append([]part{{p.Run, escapeMarks(p.Body)}}, partsOf(section)...)
	parts = slices.Concat(parts[:1], slices.DeleteFunc(slices.Clone(parts[1:]), func(other part) bool { return other.run == p.Run }))
	room := max(maxBody-len(before)-len(after), minSection)
	return before + joinParts(parts, room) + after
}

// minSection is what a section has at least, however much people wrote.
const minSection = 2000

// splitSection finds the section. Without one, all is people's, and it comes after
// that.
func splitSection(text string) (before, section, after string) {
	from := strings.Index(text, sectionBegin)
	to := strings.LastIndex(text, sectionEnd)
	switch {
	case from >= 0 && to > from:
		return text[:from], text[from+len(sectionBegin) : to], text[to+len(sectionEnd):]
	case strings.TrimSpace(text) == "":
		return "", "", ""
	}
	return strings.TrimRight(text, "\n") + "\n\n", "", ""
}

func partsOf(section string) (parts []part) {
	for piece := range strings.SplitSeq(section, runMark) {
		run, text, ok := strings.Cut(piece, markEnd)
		if ok && run != "" && !strings.ContainsAny(run, " \n") {
			parts = append(parts, part{run, strings.Trim(text, "\n")})
		}
	}
	return parts
}

// joinParts writes the section in so many bytes: the first part, cut if need be,
// and those of earlier runs that fit whole.
func joinParts(parts []part, room int) string {
	room -= len(sectionBegin) + len(sectionEnd) + 200
	var b strings.Builder
	b.WriteString(sectionBegin + "\n")
	for i, p := range parts {
		text := p.text
		if i == 0 {
			text = cutTo(text, room)
		}
		if room -= len(text) + len(p.run) + len(runMark) + 10; room < 0 && i > 0 {
			fmt.Fprintf(&b, "\n%d earlier runs are not shown.\n", len(parts)-i)
			break
		}
		fmt.Fprintf(&b, "%s%s%s\n%s\n", runMark, p.run, markEnd, text)
	}
	return b.String() + sectionEnd
}

// escapeMarks keeps what an agent wrote from looking like our own lines.
func escapeMarks(text string) string { return strings.ReplaceAll(text, markStart, "<!- - atoll:") }

// cutTo shortens a text, first by its folded end: a block of code that is cut would
// swallow what comes after it.
func cutTo(text string, most int) string {
	if at := strings.Index(text, "\n<details>"); len(text) > most && at >= 0 {
		text = text[:at] + "\n"
	}
	if len(text) > most {
		return strings.ToValidUTF8(text[:max(most, 0)], "") + "\n\n[…]"
	}
	return text
}
