package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config/json5"
)

// MaxProblems bounds how many problems of one file are reported.
const MaxProblems = 500

// Problem is one thing that is wrong with the file, or, among the warnings,
// worth knowing about it.
type Problem struct {
	File    string `json:"-"`
	Path    string `json:"path"`
	Message string `json:"message"`
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
	Hint    string `json:"hint,omitempty"`
}

// String is FILE:LINE:COL: path: message.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		fmt.Fprintf(&b, "%s:", p.File)
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if p.Path != "" {
		fmt.Fprintf(&b, "%s: ", p.Path)
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are all that is wrong with a file, in the order of the file.
type Problems []Problem

// Error has one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// report collects what is found in one file.
type report struct {
	file     string
	doc      *json5.Document
	errors   Problems
	warnings []Problem
	dropped  bool // there were errors beyond MaxProblems
}

// finding is what a check has to say about a place.
type finding struct {
	at      *path
	offset  int // in the JSON
	message string
	hint    string
}

func (r *report) error(f finding) {
	if !r.full() {
		r.errors = append(r.errors, r.problem(f))
	}
}

// full reports whether there are problems enough; what is found after that is
// only noted, so that finding out more about it can be spared.
func (r *report) full() bool {
	if len(r.errors) < MaxProblems {
		return false
	}
	r.dropped = true
	return true
}

func (r *report) warn(f finding) {
	if len(r.warnings) < MaxProblems {
		r.warnings = append(r.warnings, r.problem(f))
	}
}

func (r *report) problem(f finding) Problem {
	at := r.doc.Position(f.offset)
	return Problem{
		File: r.file, Path: f.at.String(), Message: f.message,
		Line: at.Line, Column: at.Column, Hint: f.hint,
	}
}

// err returns the problems in the order of the file, or nil.
func (r *report) err() error {
	sortByPosition(r.errors)
	if len(r.errors) == 0 {
		return nil
	}
	if r.dropped {
		const more = "there are more problems, which are not shown"
		return append(r.errors, Problem{File: r.file, Message: more})
	}
	return r.errors
}

func sortByPosition(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
