package kube

import (
	"context"
	"fmt"
)

// startTurn waits until one more pod may be made or filled: an API server that is asked for
// many at once answers none of them in time. The caller calls end when the pod runs, or is
// given up.
func (r *Runtime) startTurn(ctx context.Context) (end func(), err error) {
	select {
	case r.starts <- struct{}{}:
		return func() { <-r.starts }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%d pods are being made (kubernetes.startsAtOnce): %w", cap(r.starts), ctx.Err())
	}
}
