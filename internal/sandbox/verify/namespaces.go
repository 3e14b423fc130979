package verify

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire/findings"
)

// sharedByEngines are namespaces that an engine may share with the host, however
// it is asked: users unless it maps them, clocks, which nothing inside can set,
// and Podman's groups on version 1. The embedded runtime makes all itself.
var sharedByEngines = map[string][]string{"docker": {"user", "time"}, "podman": {"user", "cgroup", "time"}, pods: {"user", "cgroup", "time"}}

func checkNamespaces(e *Evidence) []Check {
	const ring = "namespaces"
	var apart, shared, noted []string
	for _, kind := range kinds() {
		if kind == "time" && e.Host[kind] == "" {
			continue // this kernel has none
		}
		switch {
		case isApart(e, kind):
			apart = append(apart, kind)
		case slices.Contains(sharedByEngines[e.Spec.Backend], kind):
			noted = append(noted, kind)
		default:
			shared = append(shared, kind)
		}
	}
	checks := []Check{compare(ring, "namespaces", len(shared) == 0, "apart from the host's",
		yesNo(len(shared) == 0, "apart: "+strings.Join(apart, ", "), "shared with the host: "+strings.Join(shared, ", ")))}
	if len(noted) > 0 {
		checks = append(checks, note(ring, "left to the engine", "as it is set up", "shared with the host: "+strings.Join(noted, ", ")))
	}
	return checks
}

// isApart compares the namespaces that the probe reports with the host's, and with
// what the host reads of process 1. PID 1 was created before the time namespace;
// only its children are in it.
func isApart(e *Evidence, kind string) bool {
	inside, seen := e.Inside.Namespaces[kind], e.Outside.Namespaces[kind]
	return inside != "" && inside != e.Host[kind] && (seen == "" || seen == inside || kind == "time")
}

// internalTarget is where the guest and its wire are.
const internalTarget = "/.atoll"

func checkFiles(e *Evidence) []Check {
	const ring = "files"
	var open, left []string
	for _, attempt := range e.Inside.Paths {
		switch {
		case attempt.Error != "":
		case leftToNodes(e, attempt.Name):
			left = append(left, attempt.Name)
		default:
			open = append(open, attempt.Name)
		}
	}
	checks := []Check{compare(ring, "what belongs to the machine", len(open) == 0 && len(e.Inside.Paths) >= minPaths, "masked or read-only", yesNo(len(open) == 0, "masked or read-only", "open: "+listed(open)))}
	if len(left) > 0 {
		checks = append(checks, note(ring, "left to the nodes", "as their container runtime masks it", "open: "+listed(left)))
	}
	if !e.Spec.ReadOnlyRoot {
		return append(checks, note(ring, "root", "writable", yesNo(isReadOnly(e.Inside.Mounts, "/"), "read-only", "writable")))
	}
	root := isReadOnly(e.Inside.Mounts, "/")
	checks = append(checks, compare(ring, "root", root, "read-only", yesNo(root, "read-only", "writable")))
	strange := slices.DeleteFunc(slices.Clone(e.Inside.Writable), func(dir string) bool { return mayWrite(e.Spec, dir) })
	return append(checks, compare(ring, "writable places", len(strange) == 0, "only what the policy names", yesNo(len(strange) == 0, "only those", "also "+listed(strange))))
}

// mayWrite reports whether a directory lies in something writable that was
// asked for, or in what every sandbox has of its own.
func mayWrite(spec *sandbox.Spec, dir string) bool {
	places := []string{internalTarget + "/wire", "/dev", "/proc"}
	for _, t := range spec.Tmpfs {
		places = append(places, t.Target)
	}
	for _, m := range spec.Mounts {
		if !m.ReadOnly {
			places = append(places, m.Target)
		}
	}
	for _, v := range spec.Volumes {
		if !v.ReadOnly {
			places = append(places, v.Target)
		}
	}
	return slices.ContainsFunc(places, func(place string) bool { return isBelow(dir, place) })
}

// isReadOnly looks at the mount that is on top at a place.
func isReadOnly(mounts []findings.Mount, target string) bool {
	m, ok := topMount(mounts, target)
	return ok && m.ReadOnly
}

func topMount(mounts []findings.Mount, target string) (findings.Mount, bool) {
	for _, m := range slices.Backward(mounts) {
		if m.Target == path.Clean(target) {
			return m, true
		}
	}
	return findings.Mount{}, false
}

func checkMounts(e *Evidence) []Check {
	const ring = "mounts"
	var checks []Check
	for _, m := range e.Spec.Mounts {
		checks = append(checks, checkMount(ring, e, m.Target, m.ReadOnly))
	}
	for _, v := range e.Spec.Volumes {
		checks = append(checks, checkMount(ring, e, v.Target, v.ReadOnly))
	}
	for _, t := range e.Spec.Tmpfs {
		checks = append(checks, checkTmpfs(ring, e, t))
	}
	return append(checks, checkOthers(ring, e), checkSetID(ring, e))
}

func checkTmpfs(ring string, e *Evidence, t sandbox.Tmpfs) Check {
	found, ok := topMount(e.Inside.Mounts, t.Target)
	asked := strings.Split(t.Options, ",")
	holds := ok && found.Type == "tmpfs" && (slices.Contains(asked, "suid") || ignoresSetUserID(e, hasOption(found, "nosuid")))
	promised := "in memory, no set-user-ID"
	if size := sizeOf(asked); size > 0 {
		got := sizeOf(strings.Split(found.Options, ","))
		holds, promised = holds && got > 0 && got <= size, fmt.Sprintf("%s, at most %d KiB", promised, size>>10)
	}
	return compare(ring, t.Target, holds, promised, yesNo(ok, fmt.Sprintf("%.20s, %.80s", found.Type, found.Options), "not there"))
}

func hasOption(m findings.Mount, option string) bool {
	return slices.Contains(strings.Split(m.Options, ","), option)
}

func checkMount(ring string, e *Evidence, target string, readOnly bool) Check {
	words := map[bool]string{true: "read-only", false: "read and write"}
	found, ok := topMount(e.Inside.Mounts, target)
	if !ok {
		return compare(ring, target, false, words[readOnly], "not there")
	}
	return compare(ring, target, found.ReadOnly == readOnly, words[readOnly], words[found.ReadOnly])
}
