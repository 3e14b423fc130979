package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// How often each side runs, and what is claimed.
const (
	runRounds      = 20
	runEngineEvery = 4   // rounds between two runs on the engine
	runOverhead    = 60  // ms over the bare agent, at most
	runDocker      = 1.1 // times docker run of the same, at most
	runTask        = "say that you are there"
	runImage       = "openclaw-sandbox:bookworm-slim"
)

// runStage is an installation whose model answers at once.
type runStage struct {
	options Options
	dir     string
	model   *fakellm.Server
	near    *fakellm.Server // the same on a socket, for sandboxes without a network
	n       int
}

// runBench measures what it costs to give an agent a sandbox of its own, beside
// the same agent as a bare process and in docker run.
func runBench(ctx context.Context, o Options) (_ *Report, err error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return nil, errhint.With(errors.New("the peer of this benchmark, docker, is missing"), "install Docker's command line")
	}
	s := &runStage{options: o}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.dir, err = os.MkdirTemp("", "atoll"); err != nil {
		return nil, err
	}
	if s.model, err = fakellm.Listen(ctx, "tcp", "127.0.0.1:0", fakellm.Script{fakellm.Say("I am there.")}); err != nil {
		return nil, err
	}
	if s.near, err = fakellm.Listen(ctx, "unix", filepath.Join(s.dir, "model.sock"), fakellm.Script{fakellm.Say("I am there.")}); err != nil {
		return nil, err
	}
	s.model.BeginAnew()
	s.near.BeginAnew()
	r := &Report{Bench: "run"}
	for _, part := range []func(context.Context, *Report) error{s.sides, s.crowd} {
		if err := part(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (s *runStage) close() error {
	var problems []error
	for _, model := range []*fakellm.Server{s.model, s.near} {
		if model != nil {
			problems = append(problems, model.Close())
		}
	}
	return errors.Join(append(problems, os.RemoveAll(s.dir))...)
}

// sides runs the same turn everywhere, one after the other.
func (s *runStage) sides(ctx context.Context, r *Report) error {
	linux, err := s.office(ctx, "linux", 1)
	if err != nil {
		return err
	}
	defer linux.close()
	docker, err := s.office(ctx, "docker", 1)
	if err != nil {
		return err
	}
	defer docker.close()
	samples := map[string][]float64{}
	for round := range runRounds {
		fmt.Fprintf(s.options.Progress, "round %d of %d …\n", round+1, runRounds)
		for _, side := range []struct {
			name  string
			every int
			do    func(context.Context) error
		}{
			{"bare agent", 1, s.bare}, {"run, linux", 1, linux.one},
			{"docker run", runEngineEvery, s.dockerRun}, {"run, docker", runEngineEvery, docker.one},
		} {
			if round%side.every != 0 {
				continue
			}
			start := time.Now()
			if err := side.do(ctx); err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
			samples[side.name] = append(samples[side.name], microseconds(time.Since(start))/milliseconds)
		}
	}
	median := map[string]float64{}
	for _, name := range []string{"bare agent", "run, linux", "docker run", "run, docker"} {
		one := row(name+", a turn", "ms", samples[name])
		r.Rows, median[name] = append(r.Rows, one), one.P50
	}
	r.Ratios = append(r.Ratios,
		atMost("ms that a run on linux takes beyond the bare agent, p50", median["run, linux"]-median["bare agent"], runOverhead),
		atMost("a run on docker against docker run of the same, p50", median["run, docker"]/median["docker run"], runDocker))
	return nil
}

// config writes a configuration; where is "" for tools that work in place.
func (s *runStage) config(name, backend, workspace string) (string, error) {
	type object = map[string]any
	box, tools := object{"mode": "all", "backend": backend}, object{}
	if backend == "" {
		box, tools = object{"mode": "off"}, object{"host": true}
	} else {
		box["docker"] = object{"containerPrefix": "bench-" + filepath.Base(s.dir) + "-"}
	}
	if backend == "docker" {
		box["docker"].(object)["image"] = runImage
	}
	text, err := json.Marshal(object{
		"agents": object{"defaults": object{"workspace": workspace, "model": "p/m", "sandbox": box}}, "tools": tools,
		"models": object{"providers": object{"p": object{
			"baseUrl": s.model.BaseURL(), "apiKey": "none", "api": "openai-completions", "models": []object{{"id": "m", "name": "m"}},
		}}},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, name+".json5")
	return path, errors.Join(os.MkdirAll(workspace, 0o755), os.WriteFile(path, text, 0o644))
}

// bare is the agent as a process on the host, with a state directory that is as
// new as that of a run.
func (s *runStage) bare(ctx context.Context) error {
	home, err := os.MkdirTemp(s.dir, "bare")
	if err != nil {
		return err
	}
	file, err := s.config("bare", "", filepath.Join(s.dir, "bare-workspace"))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.options.Atoll, "agent", "--local", "--json", "-m", runTask)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "ATOLL_STATE_DIR=" + filepath.Join(home, "state"), "ATOLL_CONFIG=" + file}
	return answered(cmd)
}

// dockerConfig has the agent in docker run ask its model at a socket: like a run,
// it has no network.
const dockerConfig = `{
  agents: {defaults: {workspace: "/workspace", model: "p/m", sandbox: {mode: "off"}}}, tools: {host: true},
  llm: {providers: {p: {kind: "openai", url: "unix:/model.sock", keys: [{env: "NO_KEY"}]}}},
}`

// dockerRun is the same agent in the same image, by Docker's own command, without
// a network as well: making that takes the engine longer than all the rest.
func (s *runStage) dockerRun(ctx context.Context) error {
	work, err := os.MkdirTemp(s.dir, "docker")
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, "docker-run.json5")
	if err := os.WriteFile(file, []byte(dockerConfig), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "docker", "run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--user", "0:0",
		"--memory", "512m", "-v", work+":/workspace", "-v", s.options.Atoll+":/opt/atoll/atoll:ro", "-v", file+":/atoll.json5:ro",
		"-v", filepath.Join(s.dir, "model.sock")+":/model.sock", "-e", "NO_KEY=none",
		"-e", "HOME=/workspace", "-e", "ATOLL_STATE_DIR=/workspace/.atoll", "-e", "ATOLL_CONFIG=/atoll.json5", "-w", "/workspace",
		runImage, "/opt/atoll/atoll", "agent", "--local", "--json", "-m", runTask)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+s.engine())
	return answered(cmd)
}

func (s *runStage) engine() string {
	settings, err := provide.Load(provide.LoadOptions{Getenv: s.options.Getenv, ConfigPath: s.options.Config})
	if err != nil {
		return s.options.Getenv("DOCKER_HOST")
	}
	return settings.EngineHost("docker")
}

// answered runs an agent, which must have answered.
func answered(cmd *exec.Cmd) error {
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err == nil && !strings.Contains(string(out), "I am there.") {
		err = errors.New("no answer")
	}
	if err != nil {
		return fmt.Errorf("%w: %s%s", err, out, complaints.String())
	}
	return nil
}

// office carries out runs on one backend.
type office struct {
	stage *runStage
	app   *app.App
	runs  *execute.Runs
}

func (s *runStage) office(ctx context.Context, backend string, atOnce int) (*office, error) {
	file, err := s.config(backend, backend, filepath.Join(s.dir, "agent"))
	if err != nil {
		return nil, err
	}
	s.n++
	state := filepath.Join(s.dir, fmt.Sprintf("s%d", s.n))
	getenv := func(name string) string {
		if name == "ATOLL_STATE_DIR" {
			return state
		}
		return s.options.Getenv(name)
	}
	a, err := app.Open(ctx, provide.LoadOptions{Getenv: getenv, ConfigPath: file})
	if err != nil {
		return nil, err
	}
	runs, err := a.Runs.Open(execute.Options{AtOnce: atOnce, Program: s.options.Atoll})
	if err != nil {
		a.Close()
		return nil, err
	}
	return &office{s, a, runs}, nil
}

func (o *office) close() {
	_ = o.runs.Close()
	o.app.Close()
}

func (o *office) one(ctx context.Context) error {
	_, err := o.task(ctx, "")
	return err
}

// task carries out one run, which must have answered.
func (o *office) task(ctx context.Context, account string) (*run.Receipt, error) {
	r, err := o.runs.Do(ctx, &execute.Task{Variant: "sandbox:agent", Account: account, Messages: []chat.Message{{Role: chat.User, Text: runTask}}}, nil)
	switch {
	case err != nil:
		return nil, err
	case r.Error != nil:
		return nil, r.Error
	case !strings.Contains(r.Text, "I am there."):
		return nil, fmt.Errorf("no answer, but %q", r.Text)
	}
	return r, nil
}
