package provide

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// poolsAreKept reports whether another program than the gateway keeps the pools with
// sandboxes of spec.
func (a *Installation) poolsAreKept(spec *sandbox.Spec) bool {
	return spec.Backend == BackendKubernetes && a.hasKeeper()
}

func (a *Installation) hasKeeper() bool {
	settings, _ := a.Config.Kubernetes().Settings()
	return settings.Provider == kubekeys.ProviderAgentSandbox
}

// PoolKeeper returns the runtime beside which another program keeps pools, and the name of
// its backend; nil if the configuration names none.
func (a *Installation) PoolKeeper(ctx context.Context) (sandbox.PoolKeeper, string, error) {
	if !a.hasKeeper() {
		return nil, "", nil
	}
	rt, err := a.Manager.Runtime(ctx, BackendKubernetes)
	if err != nil {
		return nil, "", err
	}
	keeper, ok := rt.(sandbox.PoolKeeper)
	if !ok {
		return nil, "", fmt.Errorf("backend %s keeps no pools: %w", BackendKubernetes, sandbox.ErrUnsupported)
	}
	return keeper, BackendKubernetes, nil
}

// DropKeptPools ends the pools that another program keeps.
func (a *Installation) DropKeptPools(ctx context.Context) error {
	keeper, _, err := a.PoolKeeper(ctx)
	if keeper == nil || err != nil {
		return err
	}
	_, err = keeper.KeepPools(ctx, nil)
	return err
}

// noteKept reports a new sandbox for which such a pool was asked, as a claim or a miss.
func (a *Installation) noteKept(spec *sandbox.Spec, h *sandbox.Handle) {
	if a.Claimed == nil || !h.Created || !a.poolsAreKept(spec) {
		return
	}
	shaped := *spec
	if shaped.Hostname = sandbox.PoolHostname; h.Member != "" || sandbox.Unpoolable(&shaped) == "" {
		a.Claimed(spec, h.Member)
	}
}
