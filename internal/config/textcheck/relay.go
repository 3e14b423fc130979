package textcheck

import (
	"net/url"
	pathpkg "path"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

var branchNameForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)

// secureShellForm is ssh://host/path, git+ssh and the like, or user@host:path.
var secureShellForm = lazyregexp.New(`(?i)^((git\+|svn\+)?ssh(\+git)?://|([A-Za-z0-9._-]+@)?[A-Za-z0-9.-]+:[^/:]|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:)`)

// checkRepository wants an address that carries objects and runs nothing.
func checkRepository(text string) (message, hint string) {
	if IsDirectory(text) {
		return checkHostPath(text)
	}
	const https = "write https://HOST/PATH, or a directory that begins with /, ~/, ./ or ../"
	if secureShellForm.MatchString(text) {
		return "addresses of ssh are not supported", "use the https address of the same repository, and a token that may push to it (relay.token)"
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "expected an address such as https://github.com/org/project", https
	case u.User != nil:
		return "the address must not hold a name or a password", "token says where the credential comes from"
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery || strings.Trim(u.Path, "/") == "":
		return "the address must have a path, and no query or fragment", https
	}
	return "", ""
}

// IsDirectory tells a path from an address by its beginning.
func IsDirectory(text string) bool {
	if text == "." || text == ".." {
		return true
	}
	for _, beginning := range []string{"/", "~/", "./", "../"} {
		if strings.HasPrefix(text, beginning) {
			return true
		}
	}
	return false
}

func checkBranchName(text string) (message, hint string) {
	if !branchNameForm.MatchString(text) || strings.Contains(text, "..") || strings.HasSuffix(text, ".lock") || strings.HasSuffix(text, ".") || len(text) > 200 {
		return "is no name of a branch", "write it without refs/heads/"
	}
	return "", ""
}

func checkPathPattern(text string) (message, hint string) {
	if _, err := pathpkg.Match(strings.ReplaceAll(text, "**", "*"), ""); err != nil || text == "" || len(text) > 500 || strings.HasPrefix(text, "/") || strings.Count(text, "**") > 3 {
		return "is no pattern of paths", "write it from the top of the repository, such as deploy/** or **/*.sql"
	}
	return "", ""
}
