package kube

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// trialPool makes a pool of agent-sandbox for the sandbox of a trial, in which none waits: its
// claim has the controller make the pod. The function that it returns removes the pool.
func (r *Runtime) trialPool(ctx context.Context, spec *sandbox.Spec) (end func(context.Context) error, err error) {
	if !r.comesByClaim(spec) {
		return func(context.Context) error { return nil }, nil
	}
	c, err := r.cluster()
	if err != nil {
		return nil, err
	}
	p, err := r.poolOf(spec)
	if err != nil {
		return nil, err
	}
	p.notes = map[string]any{noteTrial: spec.Name}
	end = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		return r.removePools(ctx, c, func(o *metav1.PartialObjectMetadata) bool { return o.Name == p.name })
	}
	if err := r.makePool(ctx, c, p, 0); err != nil {
		_ = end(ctx)
		return nil, err
	}
	return end, nil
}

// isTrial reports whether a pool may be that of a trial which goes on.
func (r *Runtime) isTrial(pool *metav1.PartialObjectMetadata) bool {
	return pool.Annotations[noteTrial] != "" && time.Since(pool.CreationTimestamp.Time) < r.startTimeout()+trialTimeout+cleanupTimeout
}
