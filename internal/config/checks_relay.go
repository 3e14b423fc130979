package config

import (
	"strings"
)

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
