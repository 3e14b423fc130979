package openclawtest_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/run/openclaw"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/openclawtest"
)

// gatewayPatience is how long the gateway may take to start: it has been seen
// to need half a minute on a machine that does nothing else.
const gatewayPatience = 10 * time.Minute

func modes() []openclaw.Mode { return []openclaw.Mode{openclaw.Ephemeral, openclaw.Gateway} }

// configured is the real OpenClaw with the configuration that a sandbox gets,
// but for its workspace and its port: those of a sandbox are not ours to use.
func configured(t *testing.T, mode openclaw.Mode) (*openclawtest.Peer, *openclawtest.Home) {
	t.Helper()
	need.Root(t, "OpenClaw starts in a mount namespace")
	peer, err := openclawtest.Find(openclawtest.Current, os.Getenv)
	if err != nil {
		need.Missing(t, err)
	}
	models, err := openclaw.FromYAML([]byte("model_list: [{model_name: small}]"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := openclaw.Config(openclaw.Options{Mode: mode, Agents: openclaw.Entries, Model: "small", Models: models, Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	home := &openclawtest.Home{Dir: t.TempDir(), Env: []string{"OPENCLAW_LOAD_SHELL_ENV=0", "OPENCLAW_GATEWAY_TOKEN=only-for-this-test-0123456789",
		openclaw.SlotVariable(1) + "=none", openclaw.SlotVariable(2) + "=none"}}
	own := strings.NewReplacer(`"/workspace"`, strconv.Quote(home.Workspace()), "18789", freePort(t)).Replace(string(text))
	if err := home.Configure([]byte(own)); err != nil {
		t.Fatal(err)
	}
	return peer, home
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// ask has OpenClaw answer in JSON.
func ask(t *testing.T, peer *openclawtest.Peer, home *openclawtest.Home, answer any, args ...string) {
	t.Helper()
	out, err := peer.Run(t.Context(), home, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), answer); err != nil {
		t.Fatalf("openclaw %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestGeneratedConfigLoadsWithoutAWarning(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		peer, home := configured(t, mode)
		var verdict struct {
			Valid    bool
			Warnings []any
		}
		if ask(t, peer, home, &verdict, "config", "validate"); !verdict.Valid || len(verdict.Warnings) > 0 {
			t.Errorf("%s: %+v", mode, verdict)
		}
	}
}

// explanation is what `openclaw sandbox explain` says of a session.
type explanation struct {
	Sandbox struct {
		Mode               string
		SessionIsSandboxed bool
	}
	Elevated struct{ Enabled, AllowedByConfig bool }
}

// Docker is not inside a sandbox: an OpenClaw that wanted one of its own could
// not do anything at all.
//
// Seen to fail with Sandbox{Mode: "all"} in openclaw.Config.
func TestInvariant_OPENCLAW_SANDBOX_OFF(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		peer, home := configured(t, mode)
		var e explanation
		if ask(t, peer, home, &e, "sandbox", "explain"); e.Sandbox.Mode != "off" || e.Sandbox.SessionIsSandboxed {
			t.Errorf("%s: %+v", mode, e.Sandbox)
		}
	}
}

// Elevated tools would be above the tool policy.
//
// Seen to fail with Elevated: enabled{true} in openclaw.Config.
func TestInvariant_OPENCLAW_ELEVATED_DISABLED(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		peer, home := configured(t, mode)
		var e explanation
		if ask(t, peer, home, &e, "sandbox", "explain"); e.Elevated.Enabled || e.Elevated.AllowedByConfig {
			t.Errorf("%s: %+v", mode, e.Elevated)
		}
	}
}

// startGateway runs the gateway until the test ends.
func startGateway(t *testing.T) (*openclawtest.Peer, *openclawtest.Home, *openclawtest.Gateway) {
	t.Helper()
	peer, home := configured(t, openclaw.Gateway)
	return peer, home, startPatiently(t, peer, home, "[gateway] ready")
}

// startPatiently starts the gateway, again if it gives up: on a busy machine the
// later release does not wait long enough for its own parts.
func startPatiently(t *testing.T, peer *openclawtest.Peer, home *openclawtest.Home, ready string) *openclawtest.Gateway {
	t.Helper()
	for range 8 {
		gateway, err := peer.StartGateway(context.WithoutCancel(t.Context()), home)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), gatewayPatience)
		_, err = gateway.Await(ctx, ready)
		cancel()
		if err == nil {
			t.Cleanup(gateway.Stop)
			return gateway
		}
		gateway.Stop()
		t.Log(err)
	}
	t.Fatal("the gateway does not start")
	return nil
}

func await(t *testing.T, gateway *openclawtest.Gateway, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), gatewayPatience)
	defer cancel()
	line, err := gateway.Await(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// Who schedules work is outside; a second scheduler would spend money that
// nobody asked for. The gateway is asked, because only it would schedule.
//
// Seen to fail with Cron: enabled{true} in openclaw.Config.
func TestInvariant_OPENCLAW_CRON_DISABLED(t *testing.T) {
	t.Parallel()
	peer, home, _ := startGateway(t)
	var status struct{ Enabled *bool }
	if ask(t, peer, home, &status, "cron", "status"); status.Enabled == nil || *status.Enabled {
		t.Errorf("the scheduler's state is %+v", status)
	}
}

// Nobody reads what an agent says at every beat, and every beat costs.
//
// Seen to fail with Heartbeat: heartbeat{Every: "30m"} in openclaw.Config.
func TestInvariant_HEARTBEAT_DISABLED(t *testing.T) {
	t.Parallel()
	_, _, gateway := startGateway(t)
	if line := await(t, gateway, "[heartbeat]"); !strings.HasSuffix(line, "[heartbeat] disabled") {
		t.Errorf("the gateway says %q", line)
	}
	for _, line := range gateway.Lines() {
		if isWarning(line) {
			t.Errorf("the gateway warns: %s", line)
		}
	}
}

// isWarning reports whether a line of the gateway's says that something is
// wrong with its configuration. That it can be reached from other containers is
// what its bind is for, and how busy this machine is not the configuration's matter.
func isWarning(line string) bool {
	for _, known := range []string{"binding to a non-loopback address", "slow SQLite"} {
		if strings.Contains(line, known) {
			return false
		}
	}
	for _, sign := range []string{"⚠", "warn", "Warn", "WARN", "invalid", "deprecated", "seeded gateway.", "required since", "doctor"} {
		if strings.Contains(line, sign) {
			return true
		}
	}
	return false
}
