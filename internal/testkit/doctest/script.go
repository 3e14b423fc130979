package doctest

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// mark begins the line that a script prints before each step. No program that
// documents show prints this control character.
const mark = "\x1e"

// step is a command of a document and what it must print.
type step struct {
	line   int
	output []string // nil: not compared
	fails  bool     // the document shows an error
}

// Script is a shell script that does what a document shows.
type Script struct {
	Name  string
	Text  string
	steps map[int]step
}

// Script makes the script of a document. Blocks for root are left out unless
// asRoot is set.
func (d *Document) Script(asRoot bool) (*Script, error) {
	s := &Script{Name: d.Name, steps: map[int]step{}}
	var out strings.Builder
	for _, b := range d.Blocks {
		if b.Skip != "" || b.AsRoot && !asRoot {
			continue
		}
		text, err := s.block(b)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", d.Name, b.Line, err)
		}
		out.WriteString(text)
	}
	s.Text = out.String()
	return s, nil
}

func (s *Script) block(b Block) (string, error) {
	switch b.Lang {
	case "sh":
		return s.begin(step{line: b.Line}) + b.Text + "\n", nil
	case "console":
		return s.console(b)
	case "json5", "json":
		return s.file(b), nil
	case "text":
		return "", nil
	}
	return "", fmt.Errorf("a block of %q: it is not known how to run it", b.Lang)
}

// begin registers a step and returns the line that announces it.
func (s *Script) begin(st step) string {
	s.steps[st.line] = st
	return fmt.Sprintf("printf '\\n%s%d\\n'\n", mark, st.line)
}

// console makes a step of every command of a block.
func (s *Script) console(b Block) (string, error) {
	var out strings.Builder
	lines := strings.Split(b.Text, "\n")
	for i := 0; i < len(lines); {
		command, ok := strings.CutPrefix(lines[i], "$ ")
		if !ok {
			return "", fmt.Errorf("line %d: a console block begins with a command", b.Line+i)
		}
		st := step{line: b.Line + i, output: []string{}}
		for i++; i < len(lines) && !strings.HasPrefix(lines[i], "$ "); i++ {
			st.output = append(st.output, lines[i])
			st.fails = st.fails || strings.HasPrefix(lines[i], "error:")
		}
		out.WriteString(s.begin(st))
		if st.fails {
			command = "if " + command + "; then echo 'it succeeded'; false; fi"
		}
		out.WriteString(command + "\n")
	}
	return out.String(), nil
}

// file makes the steps that write a configuration and check it.
func (s *Script) file(b Block) string {
	if b.Lang == "json" {
		return ""
	}
	name := fileName(b.Text)
	kept := name != ""
	if !kept {
		name = "block-" + strconv.Itoa(b.Line) + ".json5"
	}
	text := s.begin(step{line: b.Line})
	if kept {
		text += "mkdir -p " + path.Dir(name) + "\n"
	}
	return text + "cat >" + name + " <<'END_OF_FILE'\n" + b.Text + "\nEND_OF_FILE\natoll config check " + name + "\n"
}

// fileName returns the path in the comment that a configuration begins with.
func fileName(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(strings.TrimPrefix(first, "//"))
	if !strings.HasPrefix(first, "//") || len(words) == 0 || !strings.Contains(words[0], ".json") {
		return ""
	}
	return strings.TrimRight(words[0], ":,")
}
