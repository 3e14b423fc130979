package cli

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/config/trust"
)

// sayProject prints, once, that settings of the project's file are ignored.
func (e *env) sayProject(found *trust.Found) {
	if found == nil || found.Trusted || e.projectSaid {
		return
	}
	e.projectSaid = true
	switch {
	case found.Project == nil:
		e.notice(fmt.Sprintf("%s is ignored: %s; see atoll config trust", found.Path, found.Why))
	case len(found.Project.Ignored) > 0:
		e.notice(fmt.Sprintf("%s: %s, so %s ignored; see atoll config trust", found.Path, found.Why, ignoredText(found)))
	}
}

// ignoredText counts the ignored settings and names the first.
func ignoredText(found *trust.Found) string {
	first := found.Project.Ignored[0].Path
	if n := len(found.Project.Ignored); n > 1 {
		return fmt.Sprintf("%d of its settings (%s, …) are", n, first)
	}
	return first + " is"
}
