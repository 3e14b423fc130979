package execute

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/model/token"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/version"
)

// openclawGateway gives runs to an OpenClaw gateway that Atoll does not run.
type openclawGateway struct {
	executor *Executor
	config   *config.OpenClawGateway // nil if there is none

	mu     sync.Mutex
	client *protocol.Client // made by the first run
}

func (d *openclawGateway) variant() (run.Variant, error) {
	relays, err := d.executor.Config.Relay()
	o := run.GatewayOptions{Client: d.open, Keys: d}
	if relays.Container != "" {
		o.Branches = gatewayContainer{d.executor, relays.Container}
	}
	return run.OpenClawGateway(o), err
}

// open returns the one client of this process.
func (d *openclawGateway) open(context.Context) (*protocol.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client != nil {
		return d.client, nil
	}
	source, err := d.executor.Settings.KeySource(d.config.Token)
	if err != nil {
		return nil, fmt.Errorf("runs.openclaw.gateway.token: %w", err)
	}
	o := protocol.ClientOptions{
		URL: d.config.URL, Version: version.Current().Version, Logger: d.executor.Logger,
		Token: func(ctx context.Context) (string, error) {
			value, err := source.Read(ctx)
			return value.Reveal(), err
		},
	}
	if !d.config.Local {
		if o.Device, err = d.executor.gatewayDevice(); err != nil {
			return nil, err
		}
	}
	d.client = protocol.NewClient(o)
	return d.client, nil
}

func (d *openclawGateway) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client != nil {
		d.client.Close()
		d.client = nil
	}
}

// deviceFile is the seed of the identity that gateways on other machines pair
// with.
const deviceFile = "gateway-device.key"

// gatewayDevice is this installation's identity, made when it is first needed.
func (e *Executor) gatewayDevice() (*protocol.Device, error) {
	path := filepath.Join(e.Paths.AtollState, deviceFile)
	seed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		seed = make([]byte, 32)
		rand.Read(seed) // never fails
		err = provide.ReplaceFile(path, seed)
	}
	if err != nil {
		return nil, fmt.Errorf("our identity for gateways: %w", err)
	}
	return protocol.NewDevice(seed)
}

// slotLook is how often a run that waits for a slot looks for one.
const slotLook = 500 * time.Millisecond

// Lease gives a run a slot, within what its agent may call.
func (d *openclawGateway) Lease(ctx context.Context, terms *grant.Terms) (string, error) {
	agent, err := d.executor.Config.Resolve(terms.Agent)
	if err != nil {
		return "", err
	}
	for _, model := range terms.Models {
		if !service.Fits(service.AllowedModels(&agent.LLM), model) {
			return "", &run.Failure{Code: "model_not_allowed", Message: fmt.Sprintf("agent %s may not call model %s", agent.ID, model)}
		}
	}
	terms.Budget.Day = d.executor.limits.ofRun(terms.Run).MicroUSD
	look := time.NewTicker(slotLook)
	defer look.Stop()
	for slots := d.executor.models.Slots(); ; {
		name, err := slots.Lease(ctx, terms)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, token.ErrNoSlot) {
			return "", errhint.With(err, "write the gateway's configuration with `atoll openclaw config`")
		}
		select {
		case <-ctx.Done():
			return "", &run.Failure{Code: run.NoSlot, Message: err.Error() + ": write the gateway's configuration with more, by `atoll openclaw config --slots`"}
		case <-look.C:
		}
	}
}

// Release takes a run's slot back.
func (d *openclawGateway) Release(ctx context.Context, id string, ended bool) error {
	return d.executor.models.Slots().Release(ctx, id, ended)
}

// Open is the provider whose callers say who they are.
func (d *openclawGateway) Open(ctx context.Context) (string, error) {
	open, err := d.executor.models.Slots().HasOpen(ctx)
	if err != nil || !open {
		return "", err
	}
	return token.OpenProvider, nil
}

// Restarted ends the rest of slots: what was calling is gone.
func (d *openclawGateway) Restarted(ctx context.Context) error {
	return d.executor.models.Slots().EndCooldown(ctx)
}

var _ run.KeyIssuer = (*openclawGateway)(nil)
