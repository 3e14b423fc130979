package workspace

import (
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// maxSkillNote bounds the description of a skill, in characters.
const maxSkillNote = 200

// Skill is a skill as an agent is told of it.
type Skill struct {
	Name        string
	Description string // one printable line; "" if its file has none
	Path        string // of its SKILL.md, below /workspace
}

// Skills lists what SyncSkills would mirror, in order of names, described in the
// words of the host's files and never of a copy's. Under rw that is what the
// agent workspace has, which is what the sandbox sees.
func Skills(l Layout, opts SkillOptions) (list []Skill) {
	var ignored Warnings // SyncSkills has told them
	c := skillCollector{SkillOptions: opts, warnings: &ignored, found: newSkillTree()}
	defer c.close()
	if !l.HasCopy() {
		c.Roots = nil
	}
	c.collectFrom(l)
	for _, name := range slices.Sorted(maps.Keys(c.found.dirs)) {
		source := c.found.dirs[name].files[skillFileName]
		text, err := hostpath.ReadRegularBeneath(source.root, source.rel, MaxSkillFileBytes)
		if err != nil {
			continue // it is gone, or something else by now
		}
		list = append(list, Skill{name, describe(string(text)), path.Join(skillsName, name, skillFileName)})
	}
	return list
}

// describe finds what a skill says of itself: the description in its front
// matter, or else its first words.
func describe(text string) string {
	matter, body, ok := frontMatter(text)
	if ok {
		if found := description(matter); found != "" {
			return skillNote(found)
		}
		text = body
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return skillNote(line)
		}
	}
	return ""
}

// frontMatter is what stands between two lines of three dashes at the beginning.
func frontMatter(text string) (matter, body string, ok bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text, false
	}
	return strings.Cut("\n"+rest, "\n---\n")
}

// description is that member of a front matter, with the indented lines below.
func description(matter string) string {
	lines := strings.Split(matter, "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "description:") })
	if at < 0 {
		return ""
	}
	first := strings.TrimSpace(strings.TrimPrefix(lines[at], "description:"))
	words := []string{strings.TrimLeft(first, "|>-+")}
	for _, line := range lines[at+1:] {
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			break
		}
		words = append(words, line)
	}
	return strings.Trim(strings.TrimSpace(strings.Join(words, " ")), `"'`)
}

// skillNote makes one printable line of a description.
func skillNote(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxSkillNote {
		return string(runes[:maxSkillNote-1]) + "…"
	}
	return string(runes)
}
