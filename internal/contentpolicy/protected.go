package contentpolicy

import (
	"path"
	"strings"
)

// Protection is a pattern of paths, and what a change to one of them means. A
// star stands for anything within one element, two stars for any number of
// elements. Case does not count.
type Protection struct {
	Pattern string  `json:"pattern"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
}

// Protections are the paths that decide what other programs execute, or who may
// decide. A pull request that changes them looks harmless and is not.
func Protections() []Protection {
	const (
		runs     = "it is executed by the repository's automation"
		decides  = "it decides who reviews"
		hooks    = "it is executed by git on people's machines"
		rewrites = "it makes git run programs or fetch from elsewhere"
		instruct = "it instructs the agents of other people"
		editor   = "it is executed by editors that open the project"
		settings = "it asks for power on the machines of people who work in the project"
	)
	var list []Protection
	for _, group := range []struct {
		verdict  Verdict
		why      string
		patterns []string
	}{
		{Blocked, runs, []string{".github/workflows/**", ".github/actions/**", "**/action.yml", "**/action.yaml"}},
		{Blocked, rewrites, []string{"**/.gitmodules", "**/.lfsconfig"}},
		{Blocked, hooks, []string{".husky/**", ".githooks/**", "**/hooks/pre-commit", "lefthook.yml", ".lefthook.yml", ".pre-commit-config.yaml"}},
		{Blocked, settings, []string{"**/atoll.json5", "**/openclaw.json"}},
		{Approval, rewrites, []string{"**/.gitattributes"}},
		{Approval, decides, []string{"**/CODEOWNERS", ".github/*.yml", ".github/*.yaml", ".gitlab/**"}},
		{Approval, runs, []string{".gitlab-ci.yml", ".circleci/**", "azure-pipelines.yml", ".travis.yml", "**/Jenkinsfile", "bitbucket-pipelines.yml",
			".drone.yml", ".woodpecker.yml", ".woodpecker/**", ".buildkite/**", ".teamcity/**", "appveyor.yml", ".appveyor.yml", "cloudbuild.yaml", ".cirrus.yml", "**/.envrc"}},
		{Approval, instruct, []string{"**/AGENTS.md", "**/CLAUDE.md", "**/GEMINI.md", "**/SOUL.md", ".github/copilot-instructions.md", "**/.cursorrules", ".cursor/**",
			".claude/**", ".codex/**", ".agents/**", ".openclaw/**", "**/.mcp.json"}},
		{Approval, editor, []string{"**/.vscode/tasks.json", "**/.vscode/settings.json", "**/.vscode/launch.json", "**/.idea/**", "**/.devcontainer/**", "**/.devcontainer.json", "**/.vim/**", "**/.exrc", "**/.nvimrc"}},
	} {
		for _, pattern := range group.patterns {
			list = append(list, Protection{pattern, group.verdict, group.why})
		}
	}
	return list
}

// Protected is a list of protections, ready to be compared with paths. It is safe
// for concurrent use.
type Protected struct {
	list     []Protection
	patterns []Pattern
}

// NewProtected returns protections in the order in which they are compared.
func NewProtected(list []Protection) *Protected {
	p := &Protected{list: list}
	for i := range list {
		p.patterns = append(p.patterns, NewPattern(list[i].Pattern))
	}
	return p
}

// Path returns the finding of the first protection that matches a path, if that
// does not allow it.
func (p *Protected) Path(path string) []Finding {
	elements := strings.Split(Fold(path), "/")
	for i := range p.list {
		first := &p.list[i]
		switch {
		case !MatchElements(p.patterns[i], elements):
		case first.Verdict == Allowed:
			return nil
		default:
			return []Finding{{Rule: "protected-path", Verdict: first.Verdict, Path: path, Detail: first.Why + " (" + first.Pattern + ")"}}
		}
	}
	return nil
}

// Pattern is a pattern of paths, taken apart and folded: a file system that ignores
// case finds no other file.
type Pattern []string

// NewPattern returns the pattern that a text describes, as Protection has it.
func NewPattern(text string) Pattern { return strings.Split(Fold(text), "/") }

// Match reports whether a path has the form of the pattern.
func (p Pattern) Match(path string) bool { return MatchElements(p, strings.Split(Fold(path), "/")) }

// MatchElements compares a pattern with a path, element by element. Its cost is at
// most the product of the two lengths.
func MatchElements(pattern, name []string) bool {
	p, n, stars, from := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			stars, from = p, n
			p++
		case p < len(pattern) && matchElement(pattern[p], name[n]):
			p, n = p+1, n+1
		case stars >= 0: // the last two stars stand for one element more
			from++
			p, n = stars+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}

func matchElement(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
