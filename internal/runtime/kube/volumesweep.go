package kube

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/sandbox"
)

var _ sandbox.Finder = (*Runtime)(nil)

// Unrecorded returns the names of which a claim is left although they have no sandbox and
// their private copy was removed for good, also when kubernetes.workspaceVolume was removed
// since.
func (r *Runtime) Unrecorded(ctx context.Context) ([]string, error) {
	c, err := r.cluster()
	if err != nil {
		return nil, err
	}
	all, err := list[corev1.PersistentVolumeClaim](ctx, c, claims, metav1.ListOptions{LabelSelector: r.selectAll()})
	if r.hasNoClaims(err) {
		return nil, nil
	}
	var names []string
	for n := range all {
		if isAbandoned(&all[n]) {
			names = append(names, all[n].Annotations[noteName])
		}
	}
	return names, err
}

// hasNoClaims reports whether an error says that these credentials may not look for claims,
// where none are made.
func (r *Runtime) hasNoClaims(err error) bool {
	return r.settings.WorkspaceVolume == nil && apierrors.IsForbidden(err)
}

// isAbandoned reports whether the private copy of a claim was removed for good. If the
// directory of all copies is not there, something else is wrong.
func isAbandoned(claim *corev1.PersistentVolumeClaim) bool {
	source := claim.Annotations[noteSource]
	_, err := os.Lstat(source)
	_, above := os.Lstat(filepath.Dir(source))
	return claim.DeletionTimestamp == nil && source != "" && errors.Is(err, fs.ErrNotExist) && above == nil
}

// sweepVolume removes the claim of a name without a sandbox whose private copy was removed
// for good.
func (r *Runtime) sweepVolume(ctx context.Context, name string) error {
	c, err := r.cluster()
	if err != nil {
		return err
	}
	claim, err := r.readClaim(ctx, c, name)
	if r.hasNoClaims(err) {
		return nil
	}
	if err != nil || claim == nil || !isAbandoned(claim) {
		return err
	}
	if err := c.get(ctx, leases, r.leaseName(name), new(coordinationv1.Lease)); !errors.Is(err, sandbox.ErrNotFound) {
		return err // nil: it has a sandbox
	}
	return r.removeClaim(ctx, c, claim)
}
