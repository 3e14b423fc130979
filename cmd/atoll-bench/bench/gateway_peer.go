package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/testkit/openclawtest"
)

// besideOpenClaw gives the same small task to both gateways, in turn.
func besideOpenClaw(ctx context.Context, o Options, r *Report) (err error) {
	fmt.Fprintln(o.Progress, "beside the real OpenClaw …")
	model, err := fakellm.Listen(ctx, "tcp", "127.0.0.1:0", fakellm.Script{fakellm.Say("I am there.")})
	if err != nil {
		return err
	}
	defer model.Close()
	model.BeginAnew()
	ours, err := startGateway(ctx, o, model.BaseURL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	theirs, err := startOpenClaw(ctx, o, model.BaseURL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.close()) }()
	times := map[string][]float64{}
	for round := range gatewayRounds + 1 {
		for name, client := range map[string]*protocol.Client{"atoll": ours.client(), "openclaw": newGatewayClient(theirs.url, theirs.token)} {
			took, err := oneTurn(ctx, client, "agent:main:bench-"+strconv.Itoa(round))
			client.Close()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if round > 0 { // the first is for warming up
				times[name] = append(times[name], microseconds(took)/milliseconds)
			}
		}
	}
	mine, other := row("a small task, atoll", "ms", times["atoll"]), row("a small task, openclaw", "ms", times["openclaw"])
	memory := map[string]float64{"atoll": treeMB(ours.child.Process.Pid), "openclaw": treeMB(theirs.pid)}
	r.Rows = append(r.Rows, mine, other,
		row("memory of the gateway after it, atoll", "MB", []float64{memory["atoll"]}), row("memory of the gateway after it, openclaw", "MB", []float64{memory["openclaw"]}))
	r.Ratios = append(r.Ratios,
		atLeast("a small task: OpenClaw's time against ours, p50", other.P50/mine.P50, 1),
		atLeast("memory: OpenClaw's against ours", memory["openclaw"]/memory["atoll"], 1))
	return nil
}

// oneTurn has an agent answer in a session.
func oneTurn(ctx context.Context, c *protocol.Client, key string) (time.Duration, error) {
	if _, err := c.Hello(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	turn, err := c.Agent(ctx, &protocol.AgentParams{Message: runTask, SessionKey: key, IdempotencyKey: rand.Text()})
	if err != nil {
		return 0, err
	}
	outcome, err := turn.Wait(ctx)
	if err == nil && (outcome.Status != "ok" || !strings.Contains(string(outcome.Result), "I am there.")) {
		err = fmt.Errorf("no answer: %s %s %s", outcome.Status, outcome.Reason, outcome.Result)
	}
	return time.Since(start), err
}

// openclawGateway is the real one.
type openclawGateway struct {
	*openclawtest.Gateway
	dir, url, token string
	pid             int
}

func startOpenClaw(ctx context.Context, o Options, model string) (_ *openclawGateway, err error) {
	peer, err := openclawtest.Find(openclawtest.Current, o.Getenv)
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	g := &openclawGateway{url: "ws://127.0.0.1:" + strconv.Itoa(port), token: rand.Text()}
	if g.dir, err = os.MkdirTemp("", "atoll"); err != nil {
		return nil, err
	}
	home := &openclawtest.Home{Dir: g.dir, Model: model}
	text, err := openclawConfig(home, port, g.token)
	if err == nil {
		err = home.Configure(text)
	}
	if err == nil {
		g.Gateway, err = peer.StartGateway(ctx, home)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(g.dir))
	}
	c := newGatewayClient(g.url, g.token)
	defer c.Close()
	if _, err := c.Hello(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("OpenClaw's gateway does not answer: %w", err), g.close())
	}
	g.pid = g.PID()
	return g, nil
}

// openclawConfig has the same agent ask the same model; it has no sandbox.
func openclawConfig(home *openclawtest.Home, port int, token string) ([]byte, error) {
	type object = map[string]any
	return json.Marshal(object{
		"agents": object{"defaults": object{
			"workspace": home.Workspace(), "model": object{"primary": "p/m"}, "sandbox": object{"mode": "off"}, "skipBootstrap": true,
			"heartbeat": object{"every": "0"},
		}},
		"gateway": object{"port": port, "mode": "local", "bind": "loopback", "auth": object{"mode": "token", "token": token}, "controlUi": object{"enabled": false}},
		"cron":    object{"enabled": false},
		"models": object{"mode": "replace", "providers": object{"p": object{
			"baseUrl": home.Model, "apiKey": "none", "api": "openai-completions", "models": []object{{"id": "m", "name": "m", "contextWindow": 128000, "maxTokens": 4096}},
		}}},
	})
}

func (g *openclawGateway) close() error {
	g.Stop()
	return os.RemoveAll(g.dir)
}

// treeMB is the memory of a process and its children, shared parts divided among
// those who share them.
func treeMB(pid int) float64 {
	total := 0.0
	for _, p := range tree(pid) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p))
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
				kb, _ := strconv.ParseFloat(fields[1], 64)
				total += kb / 1024
			}
		}
	}
	return total
}

// tree is a process and those that descend from it.
func tree(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(text)) {
			n, _ := strconv.Atoi(child)
			all = append(all, tree(n)...)
		}
	}
	return all
}
