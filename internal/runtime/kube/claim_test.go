package kube

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// A pod waits only with a copy that is sent when it is claimed, and what a pod that waits
// has in its workspace is not brought back.
func TestPodsThatWait(t *testing.T) {
	workspace := sandbox.Mount{Source: "/state/sandboxes/one", Target: "/workspace", Kind: sandbox.MountWorkspace, Enclosed: true}
	r := &Runtime{}
	spec := &sandbox.Spec{Name: "one", Mounts: []sandbox.Mount{workspace}}
	if why := r.Unpoolable(spec); why != "" {
		t.Errorf("a private copy: %s", why)
	}
	for name, other := range map[string]*sandbox.Spec{
		"agent":  {Mounts: []sandbox.Mount{workspace, {Source: "/agent", Target: "/agent", Kind: sandbox.MountAgent, ReadOnly: true}}},
		"volume": {Mounts: []sandbox.Mount{workspace}, Volumes: []sandbox.Volume{{Name: "v", Target: "/v"}}},
	} {
		if r.Unpoolable(other) == "" {
			t.Errorf("%s: it may wait", name)
		}
	}
	if why := (&Runtime{settings: kubekeys.Settings{WorkspaceVolume: &kubekeys.Volume{Size: "1Gi"}}}).Unpoolable(spec); !strings.Contains(why, "workspaceVolume") {
		t.Errorf("a workspace on a claim: %q", why)
	}
	if copies := copiesOf(sandbox.PoolSpec(spec, "pool-one", "/state/sandboxes/pool-one"), &kubekeys.Settings{}); len(copies) != 1 || copies[0].Keep {
		t.Errorf("of a pool: %+v", copies)
	}
	if copies := copiesOf(spec, &kubekeys.Settings{}); len(copies) != 1 || !copies[0].Keep {
		t.Errorf("of a name: %+v", copies)
	}
}
