package textcheck

import (
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/config/wording"
)

// checkViewport wants the size of a page.
func checkViewport(text string) (message, hint string) {
	if _, _, err := browserkeys.ParseViewport(text); err != nil {
		return "expected the size of a page, found " + wording.Quote(text) + ": " + err.Error(), `write WIDTHxHEIGHT, such as "1280x800"`
	}
	return "", ""
}

// checkWorkspacePath wants a directory below the workspace.
func checkWorkspacePath(text string) (message, hint string) {
	if message, hint = checkLine(text); message != "" {
		return message, hint
	}
	if !filepath.IsLocal(text) || strings.Contains(text, `\`) || text == "." {
		return "expected a directory below the workspace, found " + wording.Quote(text), `write it relative to the workspace, such as "media/inbound"`
	}
	return "", ""
}
