package gate

import (
	"os"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/hostpath"
)

const (
	maxIgnoreFile  = 1 << 20 // bytes of one .gitignore
	maxIgnoreRules = 10_000  // of one file
)

// ignored applies the .gitignore files of the base, as git does. Those that the
// agent wrote do not count.
type ignored struct {
	root  *os.File
	files map[string][]ignoreRule // by directory
	dirs  map[string]string       // the rule that ignores a directory, or ""
}

func newIgnored(root *os.File) *ignored {
	return &ignored{root: root, files: map[string][]ignoreRule{}, dirs: map[string]string{}}
}

// ignoreRule is a line of a .gitignore file.
type ignoreRule struct {
	text     string
	elements []string
	negated  bool
	dirOnly  bool
}

// rule returns the line that a path is ignored by, or "". What is in an ignored
// directory is ignored.
func (i *ignored) rule(rel string, isDir bool) string {
	if above := path.Dir(rel); above != "." {
		if found := i.dirRule(above); found != "" {
			return found
		}
	}
	return i.own(rel, isDir)
}

func (i *ignored) dirRule(dir string) string {
	found, known := i.dirs[dir]
	if !known {
		found = i.rule(dir, true)
		i.dirs[dir] = found
	}
	return found
}

// own applies the rules to the path itself: the last line that matches counts, and
// of the files the deepest.
func (i *ignored) own(rel string, isDir bool) string {
	for dir := path.Dir(rel); ; dir = path.Dir(dir) {
		below := strings.TrimPrefix(rel, dir+"/")
		rules := i.load(dir)
		for n := len(rules) - 1; n >= 0; n-- {
			if rules[n].matches(below, isDir) {
				if rules[n].negated {
					return ""
				}
				return rules[n].text
			}
		}
		if dir == "." {
			return ""
		}
	}
}

func (r *ignoreRule) matches(below string, isDir bool) bool {
	return (isDir || !r.dirOnly) && contentpolicy.MatchElements(r.elements, strings.Split(below, "/"))
}

// load reads the rules of a directory; none if its file cannot be read.
func (i *ignored) load(dir string) []ignoreRule {
	rules, known := i.files[dir]
	if !known {
		data, err := hostpath.ReadRegularBeneath(i.root, path.Join(dir, ".gitignore"), maxIgnoreFile)
		if err == nil {
			rules = parseIgnore(string(data))
		}
		if dir == "." {
			if data, err := hostpath.ReadRegularBeneath(i.root, ".git/info/exclude", maxIgnoreFile); err == nil {
				rules = append(parseIgnore(string(data)), rules...)
			}
		}
		i.files[dir] = rules
	}
	return rules
}

func parseIgnore(text string) (rules []ignoreRule) {
	for line := range strings.SplitSeq(text, "\n") {
		if rule, ok := parseIgnoreLine(strings.TrimSuffix(line, "\r")); ok && len(rules) < maxIgnoreRules {
			rules = append(rules, rule)
		}
	}
	return rules
}

func parseIgnoreLine(line string) (r ignoreRule, ok bool) {
	trimmed := strings.TrimRight(line, " ")
	if strings.HasSuffix(trimmed, `\`) && len(trimmed) < len(line) {
		trimmed += " "
	}
	if trimmed == "" || trimmed[0] == '#' {
		return r, false
	}
	r.text = trimmed
	pattern, negated := strings.CutPrefix(trimmed, "!")
	pattern, dirOnly := strings.CutSuffix(pattern, "/")
	r.negated, r.dirOnly = negated, dirOnly
	anchored := strings.Contains(pattern, "/")
	r.elements = strings.Split(strings.ReplaceAll(strings.TrimPrefix(pattern, "/"), "[!", "[^"), "/")
	if !anchored {
		r.elements = append([]string{"**"}, r.elements...)
	}
	if last := len(r.elements) - 1; r.elements[last] == "**" {
		r.elements = append(r.elements, "*") // what is in it, not the directory
	}
	return r, pattern != ""
}
