package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// browserCalls are what Chromium's own sandbox is made with: the filter of a browser
// allows them, and what they would open is refused.
var browserCalls = []string{"unshare user", "clone user", "chroot"}

// checkBrowser checks Chromium's own sandbox inside ours: every renderer is in user,
// process and network namespaces that are not the probe's, and has a filter of its own.
func checkBrowser(e *Evidence) []Check {
	const ring, name = "browser", "Chromium's own sandbox"
	if !e.Spec.IsBrowser() {
		return nil
	}
	if e.Spec.NoBrowserSandbox {
		return []Check{note(ring, name, "none: dangerouslyNoSandbox is set", "off: a page that takes over its renderer has all of the browser; Atoll's sandbox is the one wall")}
	}
	const promised = "around every renderer: user, pid and net namespaces and a filter"
	if len(e.Inside.Renderers) == 0 {
		return []Check{note(ring, name, promised, "no page is open: open one, then verify")}
	}
	var open []string
	for _, r := range e.Inside.Renderers {
		if missing := missingWalls(e.Inside, &r); len(missing) > 0 {
			open = append(open, fmt.Sprintf("renderer %d has not: %s", r.PID, strings.Join(missing, ", ")))
		}
	}
	check := compare(ring, name, len(open) == 0, promised,
		yesNo(len(open) == 0, fmt.Sprintf("around %d of %d", len(e.Inside.Renderers), len(e.Inside.Renderers)), listed(open)))
	if check.Status == Gap {
		check.Remedy = "end the browser: atoll sandbox recreate --browser --all"
	}
	return []Check{check}
}

// missingWalls returns the parts of Chromium's sandbox that a renderer has not.
func missingWalls(inside *findings.Report, r *findings.Renderer) (missing []string) {
	for _, kind := range []string{"user", "pid", "net"} {
		if id := r.Namespaces[kind]; id == "" || id == inside.Namespaces[kind] {
			missing = append(missing, kind)
		}
	}
	if r.Filters <= inside.Self.Filters {
		missing = append(missing, "filter")
	}
	return missing
}

// openedCalls returns the calls that the filter of a sandbox allows for Chromium.
func openedCalls(e *Evidence) []string {
	if e.Spec.OpensNamespaces() {
		return slices.Clone(browserCalls)
	}
	return nil
}
