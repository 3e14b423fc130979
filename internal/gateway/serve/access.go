package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
)

// gatewayTokenFile holds the token that local clients find, where there is no other.
const gatewayTokenFile = "gateway.token"

// The variables that may hold a token that does everything.
const (
	ownTokenVariable      = "ATOLL_GATEWAY_TOKEN"
	openclawTokenVariable = "OPENCLAW_GATEWAY_TOKEN"
	passwordVariable      = "OPENCLAW_GATEWAY_PASSWORD"
)

// Tokens returns the store of the gateway's tokens.
func Tokens(in *provide.Installation) *access.TokenStore {
	return access.NewTokenStore(access.TokenStoreOptions{DB: in.DB, Logger: in.Logger})
}

// Devices returns the devices that programs connected from.
func Devices(in *provide.Installation) *access.Devices { return access.NewDevices(Tokens(in)) }

// openAccess makes what decides who is let in and how much they do.
func (g *Gateway) openAccess(ctx context.Context) error {
	ledger, err := g.parts.Models.Ledger(ctx)
	if err != nil {
		return err
	}
	desk := Tokens(g.parts.Installation)
	g.access = &access.Access{
		Tokens: desk, Devices: access.NewDevices(desk), Throttle: access.NewThrottle(nil), OnLogIn: g.auditLogIn,
		Limiter: access.NewLimiter(access.LimiterOptions{Spending: ledger, Sandboxes: g.parts.SandboxesOf, Defaults: quota(&g.config)}),
	}
	if g.config.Dashboard {
		g.access.Web, g.access.SecureCookie = access.NewWebLogins(desk), g.config.TLS.CertFile != ""
		g.access.CookieName = cookieName(g.parts.Paths.AtollState, g.access.SecureCookie)
	}
	if err := g.setFixed(ctx, g.parts.Settings, &g.config); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	g.work.Go(func() { desk.Maintain(background) })
	g.onClose(func() { stop(); g.work.Wait() })
	return nil
}

// quota is what holds for tokens that say nothing.
func quota(c *config.Gateway) access.Quota {
	return access.Quota{
		Requests: c.Limits.Requests, Runs: c.Limits.Runs, Sandboxes: c.Limits.Sandboxes, MicroUSD: int64(math.Round(c.Limits.USD * 1e6)),
	}
}

// setFixed lets in the tokens that are not ours to store. Without any, and without
// one of atoll token, there is one in a file that local clients find.
func (g *Gateway) setFixed(ctx context.Context, s *provide.Settings, c *config.Gateway) error {
	tokens := map[string]secret.Value{}
	for _, name := range []string{ownTokenVariable, openclawTokenVariable} {
		if text := s.Getenv(name); text != "" {
			tokens[name] = secret.New(text)
		}
	}
	written, err := writtenToken(s, c.Token)
	if err != nil {
		return err
	}
	password, err := writtenPassword(s, c)
	if err != nil {
		return err
	}
	maps.Copy(tokens, map[string]secret.Value{"gateway.auth.token": written, "gateway.auth.password": password})
	g.access.Tokens.SetFixed(tokens)
	has, err := g.access.Tokens.HasTokens(ctx)
	if err != nil {
		return err
	}
	local, err := localToken(g.parts, !has)
	if err != nil {
		return err
	}
	tokens[gatewayTokenFile] = local
	g.access.Tokens.SetFixed(tokens)
	return nil
}

// writtenPassword is gateway.auth.password, where the mode asks for one.
func writtenPassword(s *provide.Settings, c *config.Gateway) (secret.Value, error) {
	if !c.ByPassword {
		return secret.Value{}, nil
	}
	password, err := service.ReadSecret(s, "gateway.auth.password", c.Password)
	if err == nil && password.IsEmpty() {
		password = secret.New(s.Getenv(passwordVariable))
	}
	if err == nil && password.IsEmpty() {
		err = errhint.With(errors.New("gateway.auth.mode is password, and gateway.auth.password is missing"), "set it, or the variable "+passwordVariable)
	}
	return password, err
}

// writtenToken is gateway.auth.token.
func writtenToken(s *provide.Settings, t *config.Secret) (secret.Value, error) {
	return service.ReadSecret(s, "gateway.auth.token", t)
}

// localToken reads the token for local clients, making it if it is needed. It is
// as private as everything else in the state directory.
func localToken(p *Parts, needed bool) (secret.Value, error) {
	path := filepath.Join(p.Paths.AtollState, gatewayTokenFile)
	value, err := secret.File{Path: path}.Read(context.Background())
	if err == nil || !errors.Is(err, fs.ErrNotExist) || !needed {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return value, err
	}
	text := "atollgw_local_" + rand.Text() + rand.Text()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return secret.Value{}, fmt.Errorf("token of the gateway: %w", err)
	}
	_, err = f.WriteString(text + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return secret.Value{}, errors.Join(fmt.Errorf("token of the gateway: %w", err), os.Remove(path))
	}
	p.Logger.Info("a token was made for clients of this machine", "file", path)
	return secret.New(text), nil
}

// checkListen refuses to listen beyond loopback while no token was created.
func (g *Gateway) checkListen(ctx context.Context, listen []string) error {
	for _, address := range listen {
		if gateway.IsLoopback(address) {
			continue
		}
		tokens, err := g.access.Tokens.List(ctx)
		if err != nil {
			return err
		}
		if written, err := writtenToken(g.parts.Settings, g.config.Token); err != nil || len(tokens) > 0 || !written.IsEmpty() || g.config.ByPassword || g.parts.Getenv(ownTokenVariable)+g.parts.Getenv(openclawTokenVariable) != "" {
			return err
		}
		return errhint.With(fmt.Errorf("gateway on %s: there is no token to let anybody in with", address), "make one with `atoll token create --role admin`")
	}
	return nil
}
