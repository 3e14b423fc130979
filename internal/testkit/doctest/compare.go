package doctest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// anything is what a document writes for what varies: in a line any text, as a
// line any number of lines.
const anything = "…"

// Compare returns what is wrong with the output of a script; err is how the
// shell ended.
func (s *Script) Compare(output string, err error) error {
	parts := strings.Split(output, "\n"+mark)
	last := 0
	for _, part := range parts[1:] {
		number, text, _ := strings.Cut(part, "\n")
		last, _ = strconv.Atoi(number)
		if problem := s.steps[last].check(text); problem != nil {
			return fmt.Errorf("%s:%d: %w", s.Name, last, problem)
		}
	}
	if err != nil {
		return fmt.Errorf("%s:%d: %w\n%s", s.Name, last, err, parts[len(parts)-1])
	}
	if len(parts)-1 < len(s.steps) {
		return fmt.Errorf("%s: %d of %d steps ran", s.Name, len(parts)-1, len(s.steps))
	}
	return nil
}

// check compares what a step printed with what the document shows.
func (st step) check(text string) error {
	if st.output == nil {
		return nil
	}
	if pattern(st.output).MatchString(fold(text)) {
		return nil
	}
	return fmt.Errorf("it printed\n%s\nthe document shows\n%s", text, strings.Join(st.output, "\n"))
}

// pattern returns the expression that the printed lines must match.
func pattern(lines []string) *regexp.Regexp {
	var out strings.Builder
	out.WriteString(`\A`)
	for _, line := range lines {
		switch line = fold(line); line {
		case "":
		case anything:
			out.WriteString(`(?:[^\n]*\n)*?`)
		default:
			out.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), anything, `[^\n]*`) + `\n`)
		}
	}
	return regexp.MustCompile(out.String() + `\z`)
}

// fold makes every run of blanks one, and drops empty lines and those at the
// ends: columns are as wide as what is in them.
func fold(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			out = append(out, strings.Join(words, " "))
		}
	}
	if len(out) == 0 {
		return ""
	}
	folded := strings.Join(out, "\n")
	if strings.Contains(text, "\n") {
		folded += "\n"
	}
	return folded
}
