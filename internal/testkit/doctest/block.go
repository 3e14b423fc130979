// Package doctest turns the commands and files that a document shows into one
// shell script, and compares what the script printed with what the document
// says it prints.
//
// A document is Markdown. Its fenced blocks are told apart by their language:
//
//	sh       commands; each must succeed
//	console  lines that begin with "$ " are commands, the others what they print
//	json5    a configuration; it must pass `atoll config check`. One whose first
//	         line is a comment with a path is also written to that path
//	text     a drawing or a format: not run
//
// A comment before a block changes how it is run:
//
//	<!-- doctest: skip REASON -->      the block cannot run on a test machine
//	<!-- doctest: as root -->          the block is run by root only
//	<!-- doctest: needs NAME… -->      anywhere: what the document takes for granted
//	<!-- doctest: hidden … -->         the lines that follow are run, not shown
package doctest

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is a fenced block of a document, or a hidden one.
type Block struct {
	Line   int    // number of the first line of Text
	Lang   string // what follows the fence
	Text   string
	Skip   string // why the block is not run; empty if it is
	AsRoot bool   // only root can run it
}

// Document is what a test runs of one Markdown file.
type Document struct {
	Name   string
	Needs  []string
	Blocks []Block
}

// fence matches the line that opens or closes a block.
var fence = regexp.MustCompile("^\\s*```(.*)$")

// directive matches a comment for this package; its text may go on over lines.
var directive = regexp.MustCompile(`^\s*<!-- doctest: (\S+)\s*(.*)$`)

// Parse reads a document. A block without a language, an unknown directive or
// a block that does not end is an error.
func Parse(name, text string) (*Document, error) {
	p := parser{doc: &Document{Name: name}, lines: strings.Split(text, "\n")}
	for p.at < len(p.lines) {
		if err := p.next(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, p.at+1, err)
		}
	}
	return p.doc, nil
}

type parser struct {
	doc   *Document
	lines []string
	at    int
	skip  string
	root  bool
}

// next reads one line of prose, one directive or one block.
func (p *parser) next() error {
	line := p.lines[p.at]
	if m := directive.FindStringSubmatch(line); m != nil {
		return p.directive(m[1], m[2])
	}
	if m := fence.FindStringSubmatch(line); m != nil {
		return p.block(strings.TrimSpace(m[1]))
	}
	p.at++
	return nil
}

func (p *parser) directive(word, rest string) error {
	start := p.at + 1
	text, err := p.comment(rest)
	switch {
	case err != nil:
		return err
	case word == "skip" && text != "":
		p.skip = text
	case word == "as" && text == "root":
		p.root = true
	case word == "needs":
		p.doc.Needs = append(p.doc.Needs, strings.Fields(text)...)
	case word == "hidden":
		p.add(Block{Line: start + 1, Lang: "sh", Text: text})
	default:
		return fmt.Errorf("unknown directive %q", word)
	}
	return nil
}

// comment returns the text of a comment up to its end, and moves behind it.
func (p *parser) comment(text string) (string, error) {
	for !strings.Contains(text, "-->") {
		if p.at++; p.at == len(p.lines) {
			return "", fmt.Errorf("the comment does not end")
		}
		text += "\n" + p.lines[p.at]
	}
	p.at++
	text, _, _ = strings.Cut(text, "-->")
	return strings.TrimSpace(text), nil
}

func (p *parser) block(lang string) error {
	if lang == "" {
		return fmt.Errorf("a block without a language: write sh, console, json5, json or text")
	}
	start := p.at + 1
	for p.at++; p.at < len(p.lines) && !fence.MatchString(p.lines[p.at]); p.at++ {
	}
	if p.at == len(p.lines) {
		return fmt.Errorf("the block of line %d does not end", start)
	}
	p.add(Block{Line: start + 1, Lang: lang, Text: strings.Join(p.lines[start:p.at], "\n")})
	p.at++
	return nil
}

// add appends a block with what the directives before it said.
func (p *parser) add(b Block) {
	b.Skip, b.AsRoot = p.skip, p.root
	p.skip, p.root = "", false
	p.doc.Blocks = append(p.doc.Blocks, b)
}
