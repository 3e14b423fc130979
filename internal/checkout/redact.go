package checkout

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// WithoutCredentials returns a repository's configuration as a sandbox may see it:
// the variables that git needs to work in the repository, without credentials,
// without files outside of it and without signing, whose keys stay on the host. A
// work tree that is not "" replaces the one that the configuration names.
func WithoutCredentials(text, workTree string) (string, error) {
	entries, err := parseConfig(text)
	if err != nil {
		return "", err
	}
	kept := slices.DeleteFunc(entries, func(e configEntry) bool { return !visible(&e) })
	for i := range kept {
		kept[i].value = withoutUser(kept[i].value)
		kept[i].subsection = withoutUser(kept[i].subsection)
		if kept[i].name() == "core.worktree" && workTree != "" {
			kept[i].value = workTree
		}
	}
	return formatConfig(kept), nil
}

// visibleSections have the variables that git needs inside. Every other section is
// left out, whatever is in it.
func visibleSections() []string {
	return []string{
		"branch", "checkout", "core", "diff", "extensions", "feature", "fetch", "filter", "gc", "i18n", "index", "init", "lfs", "merge",
		"pack", "pull", "push", "rebase", "remote", "rerere", "submodule", "user", "worktree",
	}
}

// hiddenVariables name programs and files of the host, or keys.
func hiddenVariables() []string {
	return []string{
		"core.askpass", "core.attributesfile", "core.excludesfile", "core.fsmonitor", "core.gitproxy", "core.sshcommand", "core.alternaterefscommand",
		"remote.*.proxy", "remote.*.proxyauthmethod", "remote.*.receivepack", "remote.*.uploadpack", "remote.*.vcs", "user.signingkey", "push.gpgsign",
	}
}

// secretWords are parts of the names of variables that hold credentials.
var secretWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`token|passw|secret|credential|auth|cookie|header|apikey|accesskey|privatekey`)
})

func visible(e *configEntry) bool {
	return slices.Contains(visibleSections(), e.section) && !slices.Contains(hiddenVariables(), e.name()) && !secretWords().MatchString(e.key)
}

// userInfo matches the user and password of an address.
var userInfo = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s?#]*@`)
})

// sshUser matches addresses whose user name is needed and is no credential.
var sshUser = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:git\+)?ssh://[^:/@\s]+@`)
})

// withoutUser removes users and passwords, and query strings, from addresses.
func withoutUser(value string) string {
	if !strings.Contains(value, "://") || sshUser().MatchString(value) && strings.Count(value, "://") == 1 {
		return value
	}
	value = userInfo().ReplaceAllString(value, "$1")
	before, _, _ := strings.Cut(value, "?")
	return before
}
