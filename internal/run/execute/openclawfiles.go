package execute

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/token"
	"github.com/atoll-run/atoll/internal/run/openclaw"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// OpenClawFiles says how a gateway of OpenClaw is to be configured.
type OpenClawFiles struct {
	Dir     string // where the two files go
	Model   string // that the gateway takes by itself; "" is the first of the catalogue
	Slots   int    // runs at a time
	Headers bool   // it says itself whose a call is
	Release string // of OpenClaw; "" is the current one
	Proxy   string // where it finds models; "" is openclaw.DefaultProxy
}

// The files of a gateway: what it is configured with, which is no secret, and
// the variables that it wants, which are.
const (
	OpenClawConfigFile = "openclaw.json"
	OpenClawEnvFile    = "openclaw.env"
)

// WriteOpenClawFiles writes the configuration of a gateway and makes its tokens
// anew: a gateway that has the earlier ones must be restarted. The gateway's own
// token stays as it is.
func (e *Executor) WriteOpenClawFiles(ctx context.Context, o OpenClawFiles) error {
	// The gateway is another user's program, which has to enter the directory.
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return errhint.With(fmt.Errorf("%s is not a directory, so the gateway's files have no place: %w", o.Dir, err), "name another directory with --dir")
	}
	models := e.models.KnownModels()
	if len(models) == 0 {
		return errhint.With(errors.New("no models are known for the gateway's configuration"), "make a catalogue with `atoll models sync`")
	}
	c := openclaw.Options{Mode: openclaw.Gateway, Model: o.Model, Models: models, Slots: o.Slots, Headers: o.Headers, BaseURL: o.Proxy, Agents: openclaw.List}
	if o.Release == "" || !earlier(o.Release, openclawNew) {
		c.Agents = openclaw.Entries
	}
	if c.Model == "" {
		c.Model = models[0].ID
	}
	text, err := openclaw.Config(c)
	if err != nil {
		return err
	}
	own, err := gatewayTokenOf(filepath.Join(o.Dir, OpenClawEnvFile))
	if err != nil {
		return err
	}
	tokens, err := e.models.Slots().Provide(ctx, o.Slots, o.Headers)
	if err != nil {
		return err
	}
	var env bytes.Buffer
	fmt.Fprintf(&env, "%s=%s\n", openclaw.TokenVariable, own)
	for n := 1; n <= o.Slots; n++ {
		fmt.Fprintf(&env, "%s=%s\n", openclaw.SlotVariable(n), tokens[token.SlotName(n)].Reveal())
	}
	if o.Headers {
		fmt.Fprintf(&env, "%s=%s\n", openclaw.HeadersVariable, tokens[token.OpenProvider].Reveal())
	}
	if err := provide.ReplaceFile(filepath.Join(o.Dir, OpenClawEnvFile), env.Bytes()); err != nil {
		return err
	}
	path := filepath.Join(o.Dir, OpenClawConfigFile)
	if err := provide.ReplaceFile(path, text); err != nil {
		return err
	}
	return os.Chmod(path, 0o644) // the gateway is another user's program
}

// gatewayTokenOf is the gateway's own token: the one of an earlier file, or a new
// one.
func gatewayTokenOf(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), openclaw.TokenVariable+"="); ok && len(value) >= 16 {
			return value, nil
		}
	}
	return rand.Text() + rand.Text(), nil
}
