package checkout

import (
	"errors"
	"fmt"
	"strings"
)

// configEntry is one variable of a git configuration file.
type configEntry struct {
	section    string // lower case
	subsection string // as written; "" if there is none
	key        string // lower case
	value      string
	bare       bool // there is no "=", which means true
}

// name returns "section.key" or "section.*.key" for a variable of a subsection.
func (e *configEntry) name() string {
	if e.subsection != "" {
		return e.section + ".*." + e.key
	}
	return e.section + "." + e.key
}

func readConfig(path string) ([]configEntry, error) {
	text, err := readFile(path, maxConfig)
	if err != nil {
		return nil, err
	}
	return parseConfig(string(text))
}

// errConfig means that a configuration file is not one that git would read.
var errConfig = errors.New("cannot be read as a configuration of git")

// parseConfig reads a configuration file. Files that it names are not read.
func parseConfig(text string) ([]configEntry, error) {
	text = strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff")
	p := configParser{rest: text, line: 1}
	var entries []configEntry
	for p.skipSpace(); p.rest != ""; p.skipSpace() {
		switch p.rest[0] {
		case '#', ';':
			p.skipLine()
		case '[':
			if !p.header() {
				return nil, p.fail()
			}
		default:
			entry, ok := p.variable()
			if !ok || p.section == "" {
				return nil, p.fail()
			}
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// configParser is what is left of a configuration file, and the section it is in.
type configParser struct {
	rest                string
	line                int
	section, subsection string
}

func (p *configParser) fail() error { return fmt.Errorf("line %d %w", p.line, errConfig) }

// next takes one byte, and 0 at the end.
func (p *configParser) next() byte {
	if p.rest == "" {
		return 0
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	if c == '\n' {
		p.line++
	}
	return c
}

func (p *configParser) skipSpace() {
	for p.rest != "" && strings.IndexByte(" \t\r\n\v\f", p.rest[0]) >= 0 {
		p.next()
	}
}

func (p *configParser) skipLine() {
	for c := p.next(); c != '\n' && c != 0; c = p.next() {
	}
}

// header reads [section], [section "subsection"] or the old [section.subsection].
func (p *configParser) header() bool {
	inside, rest, ok := strings.Cut(p.rest[1:], "]")
	if !strings.Contains(inside, `"`) {
		section, sub, _ := strings.Cut(inside, ".")
		p.section, p.subsection, p.rest = strings.ToLower(section), strings.ToLower(sub), rest
		return ok && isSection(p.section)
	}
	section, quoted, _ := strings.Cut(p.rest[1:], `"`)
	p.section, p.rest = strings.ToLower(strings.TrimSpace(section)), quoted
	var sub strings.Builder
	for c := p.next(); c != '"'; c = p.next() {
		if c == '\\' {
			c = p.next()
		}
		if c == 0 || c == '\n' {
			return false
		}
		sub.WriteByte(c)
	}
	p.subsection = sub.String()
	return isSection(p.section) && p.next() == ']'
}

func isSection(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// variable reads "key", or "key = value" with its quotes, escapes and comments.
func (p *configParser) variable() (configEntry, bool) {
	end := strings.IndexAny(p.rest, "= \t\n#;")
	if end < 0 {
		end = len(p.rest)
	}
	e := configEntry{section: p.section, subsection: p.subsection, key: strings.ToLower(p.rest[:end])}
	p.rest = strings.TrimLeft(p.rest[end:], " \t")
	if !isSection(e.key) || e.key[0] < 'a' {
		return e, false
	}
	if !strings.HasPrefix(p.rest, "=") {
		e.bare = p.rest == "" || strings.IndexByte("\n#;", p.rest[0]) >= 0
		p.skipLine()
		return e, e.bare
	}
	p.next()
	value, ok := p.value()
	e.value = value
	return e, ok
}

// value reads up to the end of the line, which a backslash continues.
func (p *configParser) value() (string, bool) {
	var value strings.Builder
	kept, quoted := 0, false // without space at the end
	p.rest = strings.TrimLeft(p.rest, " \t")
	for {
		c := p.next()
		switch {
		case c == '\n' || c == 0:
			return value.String()[:kept], !quoted
		case !quoted && (c == '#' || c == ';'):
			p.skipLine()
			return value.String()[:kept], true
		case c == '"':
			quoted = !quoted
			kept = value.Len()
			continue
		case c == '\\':
			if c = p.next(); c == '\n' {
				continue
			}
			at := strings.IndexByte(`"\ntb`, c)
			if c == 0 || at < 0 {
				return "", false
			}
			c = "\"\\\n\t\b"[at]
			value.WriteByte(c)
			kept = value.Len()
			continue
		}
		value.WriteByte(c)
		if quoted || c != ' ' && c != '\t' {
			kept = value.Len()
		}
	}
}

// formatConfig writes entries as a configuration file.
func formatConfig(entries []configEntry) string {
	var b strings.Builder
	last := ""
	for _, e := range entries {
		header := "[" + e.section + "]"
		if e.subsection != "" {
			header = "[" + e.section + ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(e.subsection) + `"]`
		}
		if header != last {
			b.WriteString(header + "\n")
			last = header
		}
		if e.bare {
			b.WriteString("\t" + e.key + "\n")
			continue
		}
		b.WriteString("\t" + e.key + ` = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(e.value) + "\"\n")
	}
	return b.String()
}
