package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
)

// Tmpfs is one entry of docker.tmpfs taken apart.
type Tmpfs struct {
	Target  string // normalised
	Options string // as written
}

// SplitTmpfs takes "target[:options]" apart.
func SplitTmpfs(spec string) Tmpfs {
	target, options, _ := strings.Cut(spec, ":")
	return Tmpfs{Target: NormalizePath(target), Options: options}
}

// The options of a tmpfs: words, and names with a value. Options that would
// allow devices or set-user-ID programs are not among them.
var (
	tmpfsWords  = []string{"ro", "rw", "exec", "noexec", "nosuid", "nodev"}
	tmpfsValues = []string{"size", "mode", "uid", "gid", "nr_blocks", "nr_inodes"}
)

const hintTmpfs = "Use a path of its own, such as /tmp."

// checkTmpfs judges where temporary file systems go: not over what the sandbox
// is for, and not over what keeps it running.
func checkTmpfs(docker config.Docker, _ Host) (found findings) {
	workdir := NormalizePath(docker.Workdir)
	for i, spec := range docker.Tmpfs {
		field := fmt.Sprintf("tmpfs[%d]", i)
		entry := SplitTmpfs(spec)
		switch target := entry.Target; {
		case !strings.HasPrefix(spec, "/") || hasControl(spec):
			found.add(field, "Write the path from /.", "tmpfs %q is not an absolute path", spec)
		case target == "/" || within(target, "/proc") || within(target, "/sys"):
			found.add(field, hintTmpfs, "tmpfs %q would hide the system of the sandbox", spec)
		case within(target, InternalTarget):
			found.add(field, hintTmpfs, "tmpfs %q is reserved for Atoll", spec)
		case within(workdir, target) || within(AgentTarget, target):
			found.add(field, hintTmpfs, "tmpfs %q would hide the workspace", spec)
		case slices.ContainsFunc(docker.Binds, func(bind string) bool { return bindTarget(bind) == target }):
			found.add(field, "Remove one of the two.", "tmpfs %q has the target of a bind", spec)
		}
		for _, option := range tmpfsProblems(entry) {
			found.add(field, "Use size=, mode=, uid=, gid=, nr_inodes=, nr_blocks=, ro, rw, exec, noexec, nosuid or nodev.",
				"tmpfs %q: option %q is not accepted", spec, option)
		}
	}
	return found
}

// tmpfsProblems lists the options that are not known.
func tmpfsProblems(entry Tmpfs) (unknown []string) {
	if entry.Options == "" {
		return nil
	}
	for option := range strings.SplitSeq(entry.Options, ",") {
		name, value, hasValue := strings.Cut(option, "=")
		known := !hasValue && slices.Contains(tmpfsWords, name) ||
			value != "" && !strings.ContainsAny(value, " :") && slices.Contains(tmpfsValues, name)
		if !known {
			unknown = append(unknown, option)
		}
	}
	return unknown
}
