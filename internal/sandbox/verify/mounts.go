package verify

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire/findings"
)

// kernelTrees are where a sandbox has file systems of the kernel, and masks over
// parts of them: which kinds may be mounted there.
var kernelTrees = map[string][]string{
	"/proc": {"proc", "tmpfs", "devtmpfs"},
	"/sys":  {"sysfs", "tmpfs", "devtmpfs", "cgroup", "cgroup2"},
	"/dev":  {"tmpfs", "devtmpfs", "devpts", "mqueue"},
}

// engineFiles are what engines mount into every container.
var engineFiles = []string{"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv", "/dev/termination-log", internalTarget}

// hostPrograms are where the host's own programs are shown, if they are the
// image: read-only, and settings among them covered.
var hostPrograms = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs/java/cacerts"}

// javaSettings are the settings of the host's Java, which are shown with its programs.
const javaSettings = "/etc/java-*-openjdk"

// checkOthers reports mounts that the spec does not have, writable or not.
func checkOthers(ring string, e *Evidence) Check {
	var strange []string
	for _, m := range e.Inside.Mounts {
		if !isExpected(e.Spec, m) {
			strange = append(strange, m.Target)
		}
	}
	found := yesNo(len(strange) == 0, "nothing else", "also "+listed(strange))
	if e.Spec.GPUs != "" {
		return note(ring, "others", "what "+e.Spec.GPUs+" GPUs need", found)
	}
	return compare(ring, "others", len(strange) == 0 && len(e.Inside.Mounts) > 0, "nothing else", found)
}

func isExpected(spec *sandbox.Spec, m findings.Mount) bool {
	own := []string{"/", internalTarget + "/guest", internalTarget + "/wire"}
	for i, m := range spec.Mounts {
		if m.Overlay != nil {
			own = append(own, sandbox.ChangesTarget(i))
		}
	}
	for _, t := range spec.Tmpfs {
		own = append(own, path.Clean(t.Target))
	}
	switch {
	case slices.Contains(own, m.Target), isBound(spec, m.Target):
		return true
	case spec.Image == hostImage && m.ReadOnly && isHostProgram(m.Target):
		return true
	case m.ReadOnly && m.Target == sandbox.RootsTarget: // with the CA of egress
		return true
	case spec.Backend != embedded && slices.Contains(engineFiles, m.Target):
		return true
	}
	for tree, types := range kernelTrees {
		if isBelow(m.Target, tree) {
			return slices.Contains(types, m.Type)
		}
	}
	return false
}

// isHostProgram reports whether the host's own programs are shown at a place.
func isHostProgram(target string) bool {
	if slices.ContainsFunc(hostPrograms, func(place string) bool { return isBelow(target, place) }) {
		return true
	}
	parts := strings.SplitN(target, "/", 4)
	ok, _ := path.Match(javaSettings, strings.Join(parts[:min(3, len(parts))], "/"))
	return ok
}

// The backend without an engine, and its image of the host's own programs.
const embedded, hostImage = "linux", "host"

// isBound reports whether a place is in a directory that was asked for. What is
// mounted below that on the host is part of it.
func isBound(spec *sandbox.Spec, target string) bool {
	for _, m := range spec.Mounts {
		if isBelow(target, m.Target) {
			return true
		}
	}
	return slices.ContainsFunc(spec.Volumes, func(v sandbox.Volume) bool { return isBelow(target, v.Target) })
}

func isBelow(target, place string) bool {
	place = path.Clean(place)
	return target == place || strings.HasPrefix(target, place+"/")
}

// sizeOf is what "size=" among options says in bytes; 0 if nothing does.
func sizeOf(options []string) int64 {
	const units = "bkmgt"
	for _, option := range options {
		text, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(option)), "size=")
		if !ok || text == "" {
			continue
		}
		shift := 0
		if unit := strings.IndexByte(units, text[len(text)-1]); unit >= 0 {
			text, shift = text[:len(text)-1], unit*10
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n <= math.MaxInt64>>shift {
			return n << shift
		}
	}
	return 0
}
