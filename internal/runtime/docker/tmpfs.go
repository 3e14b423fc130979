package docker

import (
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// tmpfsShare is the part of the memory limit that temporary file systems
// without a size of their own may hold together, in percent. Their content is
// counted as memory and no killed process gives it back: were it all of the
// limit, a full /tmp would end the guest.
const tmpfsShare = 75

// tmpfs are the temporary file systems with the options they really get, which
// engines fill up in different ways otherwise.
func (r *recipe) tmpfs() map[string]string {
	size := tmpfsSize(r.spec)
	mounts := map[string]string{}
	for _, t := range r.spec.Tmpfs {
		mounts[t.Target] = tmpfsOptions(t.Options, size)
	}
	if r.flavor == Podman {
		podmanTmpfs(r.spec, mounts)
	}
	return mounts
}

// tmpfsSize is what each file system without a size gets; "" is no limit.
func tmpfsSize(spec *sandbox.Spec) string {
	unsized := 0
	for _, t := range spec.Tmpfs {
		if !hasOption(t.Options, "size") {
			unsized++
		}
	}
	memory := spec.Limits.WithDefaults(spec.Limits.Defaults).Memory
	if unsized == 0 || memory == 0 {
		return ""
	}
	return strconv.FormatInt(memory/100*tmpfsShare/int64(unsized), 10)
}

// tmpfsOptions adds Docker's defaults to the options that were asked for.
func tmpfsOptions(asked, size string) string {
	options := []string{}
	if asked != "" {
		options = append(options, asked)
	}
	for _, pair := range [][2]string{{"noexec", "exec"}, {"nosuid", "suid"}, {"nodev", "dev"}} {
		if !hasOption(asked, pair[0]) && !hasOption(asked, pair[1]) {
			options = append(options, pair[0])
		}
	}
	if !hasOption(asked, "mode") {
		options = append(options, "mode=1777")
	}
	if size != "" && !hasOption(asked, "size") {
		options = append(options, "size="+size)
	}
	return strings.Join(options, ",")
}

func hasOption(options, name string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if key, _, _ := strings.Cut(strings.TrimSpace(option), "="); key == name {
			return true
		}
	}
	return false
}
