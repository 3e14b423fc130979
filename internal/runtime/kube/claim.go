package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var (
	_ sandbox.Claimer     = (*Instance)(nil)
	_ sandbox.ClaimKeeper = (*Instance)(nil)
	_ sandbox.Pooler      = (*Runtime)(nil)
)

// Claim notes in the Lease that a sandbox of a pool is that of spec from now on, unless
// another process has changed the Lease since it was read, and sends the workspace.
func (i *Instance) Claim(ctx context.Context, spec *sandbox.Spec) error {
	if err := i.claim(ctx, spec); err != nil {
		return fmt.Errorf("sandbox %q: claim: %w", i.name, err)
	}
	return i.copyIn(ctx)
}

func (i *Instance) claim(ctx context.Context, spec *sandbox.Spec) error {
	known := labelsOf(i.current())
	if known[sandbox.LabelPool] == "" {
		return fmt.Errorf("it is not in a pool any more: %w", sandbox.ErrBusy)
	}
	own := maps.Clone(known)
	delete(own, sandbox.LabelPool)
	maps.Copy(own, sandbox.Labels(spec, i.runtime.installation, i.current().CreationTimestamp.Time))
	labels, err := json.Marshal(own)
	if err != nil {
		return err
	}
	copies, err := json.Marshal(copiesOf(spec, &kubekeys.Settings{})) // no pod of a pool has a claim
	if err != nil {
		return err
	}
	return i.advance(ctx, func(l *coordinationv1.Lease) {
		l.Annotations[noteLabels], l.Annotations[noteCopies] = string(labels), string(copies)
		l.Spec.HolderIdentity = new(holder())
	})
}

// KeepClaim notes in the Lease whose sandbox it is, if it does not say so any more: a
// cluster whose etcd was restored from a snapshot has the Lease from before the claim, by
// which nothing would be brought home.
func (i *Instance) KeepClaim(ctx context.Context, spec *sandbox.Spec) error {
	if labelsOf(i.current())[sandbox.LabelPool] == "" {
		return nil
	}
	i.runtime.logger.Warn("the cluster has lost who claimed a sandbox; it is noted again", "sandbox", spec.Name, "lease", i.current().Name)
	if err := i.claim(ctx, spec); err != nil {
		return fmt.Errorf("sandbox %q: claim: %w", i.name, err)
	}
	return nil
}

// Unpoolable returns why a sandbox of spec cannot wait in a pool; "" if it can.
func (r *Runtime) Unpoolable(spec *sandbox.Spec) string {
	for _, m := range spec.Mounts {
		if r.settings.WorkspaceVolume != nil && m.Kind == sandbox.MountWorkspace {
			return "its workspace is on a volume of its own (kubernetes.workspaceVolume)"
		}
		if m.Kind != sandbox.MountWorkspace {
			return "it has a copy of " + m.Source + ", which may change before it is claimed"
		}
	}
	if len(spec.Volumes) > 0 {
		return "a volume belongs to one pod at a time"
	}
	return ""
}
