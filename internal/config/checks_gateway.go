package config

import (
	"github.com/atoll-run/atoll/internal/config/textcheck"
)

// checkAnyOrigin says that every page is not allowed.
func checkAnyOrigin(c *checker, at *path, n *node) {
	origins := n.get("allowedOrigins")
	if origins == nil || origins.kind != '[' {
		return
	}
	for i, origin := range origins.items {
		if origin.text == textcheck.AnyOrigin {
			c.warn(finding{at.child("allowedOrigins").item(i), origin.offset, "not acted on: pages of every origin there is are not let in", "name the origins"})
		}
	}
}
