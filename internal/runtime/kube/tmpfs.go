package kube

import (
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// kubeTmpfs are the options of temporary file systems that a volume in memory fulfils. No
// process of a pod gets privileges by a file, or makes devices.
var kubeTmpfs = []string{"", "size", "mode", "rw", "exec", "nosuid", "nodev"}

// tmpfsGaps are options of temporary file systems that volumes in memory do not have.
func tmpfsGaps(spec *sandbox.Spec) (gaps []sandbox.Gap) {
	for _, t := range spec.Tmpfs {
		for option := range strings.SplitSeq(t.Options, ",") {
			name, _, _ := strings.Cut(option, "=")
			if !slices.Contains(kubeTmpfs, name) {
				gaps = append(gaps, sandbox.Gap{Field: "docker.tmpfs", Reason: t.Target + ": volumes of pods in memory have no option " + name, Remedy: "remove " + name + ", or set sandbox.backend to docker or linux"})
			}
		}
	}
	return gaps
}
