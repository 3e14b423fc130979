package config

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
func checkRepository(n *node) (message, hint string) {
	if isDirectory(n.text) {
		return checkHostPath(n)
	}
	const https = "write https://HOST/PATH, or a directory that begins with /, ~/, ./ or ../"
	if secureShellForm.MatchString(n.text) {
		return "addresses of ssh are not supported", "use the https address of the same repository, and a token that may push to it (relay.token)"
	}
	u, err := url.Parse(n.text)
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

// isDirectory tells a path from an address by its beginning.
func isDirectory(text string) bool {
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

func checkBranchName(n *node) (message, hint string) {
	if !branchNameForm.MatchString(n.text) || strings.Contains(n.text, "..") || strings.HasSuffix(n.text, ".lock") || strings.HasSuffix(n.text, ".") || len(n.text) > 200 {
		return "is no name of a branch", "write it without refs/heads/"
	}
	return "", ""
}

func checkPathPattern(n *node) (message, hint string) {
	if _, err := pathpkg.Match(strings.ReplaceAll(n.text, "**", "*"), ""); err != nil || n.text == "" || len(n.text) > 500 || strings.HasPrefix(n.text, "/") || strings.Count(n.text, "**") > 3 {
		return "is no pattern of paths", "write it from the top of the repository, such as deploy/** or **/*.sql"
	}
	return "", ""
}

// checkRelay wants encryption on the way to every repository.
func checkRelay(c *checker, at *path, n *node) {
	if plain := n.get("allowHTTP"); plain != nil && plain.text == "true" {
		return
	}
	checkEncrypted(c, at, n)
	for _, part := range []string{"accounts", "agents"} {
		if entries := n.get(part); entries != nil {
			for _, m := range entries.members {
				checkEncrypted(c, at.child(part).child(m.key), m.value)
			}
		}
	}
}

func checkEncrypted(c *checker, at *path, n *node) {
	if repository := n.get("repository"); repository != nil && strings.HasPrefix(repository.text, "http:") {
		c.error(finding{at.child("repository"), repository.offset, "the address has no encryption", "use https, or set allowHTTP if the network is trusted"})
	}
}

// checkTokenOrApp wants one credential.
func checkTokenOrApp(c *checker, at *path, n *node) {
	if app := n.get("app"); app != nil && n.get("token") != nil {
		c.error(finding{at.child("app"), app.offset, "token and app exclude each other", "keep one of the two"})
	}
}
