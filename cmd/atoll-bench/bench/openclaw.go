package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/openclawtest"
)

// How often each side has its turn, how often OpenClaw calls each tool then, and
// what is claimed.
const (
	openclawTurns  = 2
	openclawExecs  = 12
	openclawWrites = 4
	bareCalls      = 20
	bareFactor     = 15 // at least so many times less time in docker
	toolFactor     = 6
	writeFactor    = 5
)

// openclawBench has the real OpenClaw call its exec and write tools, on Atoll's
// docker and on the real one in turn, and measures the time that its calls
// of docker take. What OpenClaw itself needs is the same on both sides; the
// whole time of a tool, as the model sees it, is shown beside.
//
// OpenClaw's exec tool starts a login shell, which takes the same time wherever
// it runs. So a bare exec of true in the container that OpenClaw made is measured
// too, and shown is what the tool's calls take beyond such a shell, which has its
// turn on the host right before each of them.
func openclawBench(ctx context.Context, o Options) (*Report, error) {
	peer, err := openclawtest.Find(openclawtest.Current, o.Getenv)
	if err != nil {
		return nil, err
	}
	engine, err := exec.LookPath("docker")
	if err != nil {
		return nil, errhint.With(errors.New("the peer of this benchmark, the docker command, is missing"), "install docker.io or docker-ce-cli")
	}
	ours, theirs := &toolTimes{}, &toolTimes{}
	for range openclawTurns {
		for _, side := range []struct {
			name, program string
			sum           *toolTimes
		}{{"atoll", filepath.Join(filepath.Dir(o.Self), "atoll-docker"), ours}, {"docker", engine, theirs}} {
			fmt.Fprintln(o.Progress, "OpenClaw on "+side.name+" …")
			times, err := measureOpenClaw(ctx, o, peer, side.program)
			if err != nil {
				return nil, err
			}
			side.sum.add(times)
		}
	}
	r := &Report{Bench: "openclaw", Rows: slices.Concat(ours.rows("atoll"), theirs.rows("docker"))}
	p50 := func(times []float64) float64 { return row("", "", times).P50 }
	shell := p50(slices.Concat(ours.shell, theirs.shell))
	r.Ratios = append(r.Ratios,
		atLeast("bare exec true: time in docker / in Atoll", p50(theirs.bare)/p50(ours.bare), bareFactor),
		atLeast("the exec tool with true: time in docker / in Atoll", p50(theirs.exec)/p50(ours.exec), toolFactor),
		shown("the same, beyond the shell that it starts", (p50(theirs.exec)-shell)/(p50(ours.exec)-shell)),
		atLeast("the write tool: time in docker / in Atoll", p50(theirs.write)/p50(ours.write), writeFactor))
	return r, nil
}

// toolTimes are milliseconds: in calls of docker, and of the whole tool.
// Bare is an exec in the same container without a shell, shell is the shell
// alone.
type toolTimes struct{ exec, write, wholeExec, wholeWrite, bare, shell []float64 }

// add joins what another turn took.
func (t *toolTimes) add(more *toolTimes) {
	t.exec, t.write = append(t.exec, more.exec...), append(t.write, more.write...)
	t.wholeExec, t.wholeWrite = append(t.wholeExec, more.wholeExec...), append(t.wholeWrite, more.wholeWrite...)
	t.bare, t.shell = append(t.bare, more.bare...), append(t.shell, more.shell...)
}

func (t *toolTimes) rows(side string) []Row {
	return []Row{
		row("bare exec true in "+side, "ms", t.bare),
		row("the exec tool, in "+side, "ms", t.exec), row("its shell alone, on the host", "ms", t.shell),
		row("the write tool, in "+side, "ms", t.write),
		row("the whole exec tool on "+side, "ms", t.wholeExec), row("the whole write tool on "+side, "ms", t.wholeWrite),
	}
}

// openclawScript calls exec, and then write.
func openclawScript() (script fakellm.Script) {
	for range openclawExecs {
		script = append(script, fakellm.Use("exec", `{"command":"true"}`))
	}
	for i := range openclawWrites {
		script = append(script, fakellm.Use("write", fmt.Sprintf(`{"path":"notes/%d.txt","content":"hello"}`, i)))
	}
	return append(script, fakellm.Say("done"))
}

func measureOpenClaw(ctx context.Context, o Options, peer *openclawtest.Peer, program string) (_ *toolTimes, err error) {
	dir, err := os.MkdirTemp("", "atoll")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	model, err := fakellm.Listen(ctx, "tcp", "127.0.0.1:0", openclawScript())
	if err != nil {
		return nil, err
	}
	defer model.Close()
	settings, err := provide.Load(provide.LoadOptions{Getenv: o.Getenv, ConfigPath: o.Config})
	if err != nil {
		return nil, err
	}
	home := &openclawtest.Home{Dir: dir, Docker: filepath.Join(dir, "timed"), Model: model.BaseURL(),
		Env: []string{"ATOLL_STATE_DIR=" + filepath.Join(dir, "state"), "DOCKER_HOST=" + settings.EngineHost("docker")}}
	log := filepath.Join(dir, "log")
	script := fmt.Sprintf("#!/bin/sh\nexec %q timed-docker %q %q \"$@\"\n", o.Self, log, program)
	if err := os.WriteFile(home.Docker, []byte(script), 0o755); err != nil {
		return nil, err
	}
	if err := errors.Join(home.Prepare("none"), importImage(ctx, o, home)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, removeMade(ctx, home, log)) }()
	if _, err := peer.Run(ctx, home, "agent", "--local", "--agent", "main", "--message", "work", "--json"); err != nil {
		return nil, errors.Join(err, model.Err())
	}
	calls, err := readCalls(log)
	if err != nil {
		return nil, err
	}
	times := attribute(calls, model.Requests())
	times.bare, err = bareExecs(ctx, home, program, calls)
	return times, errors.Join(err, model.Err())
}

// bareExecs runs true in the container that OpenClaw made.
func bareExecs(ctx context.Context, home *openclawtest.Home, program string, calls []dockerCall) (times []float64, err error) {
	made := slices.IndexFunc(calls, func(c dockerCall) bool { return c.Made != "" })
	if made < 0 {
		return nil, errors.New("OpenClaw has made no container")
	}
	for range bareCalls {
		cmd := exec.CommandContext(ctx, program, "exec", calls[made].Made, "true")
		cmd.Env = append(os.Environ(), home.Env...)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s exec: %w: %s", filepath.Base(program), err, out)
		}
		times = append(times, inMilliseconds(time.Since(began)))
	}
	return times, nil
}

// importImage puts OpenClaw's image where Atoll needs no engine for it.
func importImage(ctx context.Context, o Options, home *openclawtest.Home) error {
	getenv := func(name string) string {
		for _, entry := range home.Env {
			if key, value, _ := strings.Cut(entry, "="); key == name {
				return value
			}
		}
		return o.Getenv(name)
	}
	a, err := app.Open(ctx, provide.LoadOptions{Getenv: getenv, OwnConfig: true})
	if err != nil {
		return err
	}
	defer a.Close()
	_, err = a.ImportFromEngine(ctx, "docker", openclawImage, rootfs.AddOptions{})
	return err
}

// openclawImage is the one that OpenClaw uses unless it is told otherwise.
const openclawImage = "openclaw-sandbox:bookworm-slim"

// dockerCall is one call of docker.
type dockerCall struct {
	At    time.Time `json:"at"`
	Took  int64     `json:"took"`            // nanoseconds
	Made  string    `json:"made,omitempty"`  // name of a container that it was to make
	Shell int64     `json:"shell,omitempty"` // what a login shell took right before, if the call starts one
}

// loginShell is how OpenClaw's exec tool has its shell start a command.
const loginShell = "-lc"

// timeLogin takes the time of such a shell that has nothing to start.
func timeLogin(ctx context.Context) (int64, error) {
	began := time.Now()
	err := exec.CommandContext(ctx, "/bin/sh", loginShell, "true").Run()
	return time.Since(began).Nanoseconds(), err
}

// TimeDocker runs a docker as a child and appends how long it took to a file.
func TimeDocker(ctx context.Context, log string, argv []string) (code int, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var call dockerCall
	if slices.Contains(argv, loginShell) {
		if call.Shell, err = timeLogin(ctx); err != nil {
			return 0, err
		}
	}
	call.At = time.Now()
	err = cmd.Run()
	call.Took = time.Since(call.At).Nanoseconds()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if len(argv) > 3 && argv[1] == "create" && argv[2] == "--name" {
		call.Made = argv[3]
	}
	line, err := json.Marshal(call)
	if err != nil {
		return 0, err
	}
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = file.Write(append(line, '\n'))
	return cmd.ProcessState.ExitCode(), errors.Join(err, file.Close())
}

func readCalls(log string) (calls []dockerCall, err error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var call dockerCall
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, lines.Err()
}

// attribute gives every call of docker to the tool that was at work: the one
// that the request before it was answered with.
func attribute(calls []dockerCall, requests []*fakellm.Request) *toolTimes {
	t := &toolTimes{}
	for i := range len(requests) - 1 {
		from, to := requests[i].At, requests[i+1].At
		var inDocker time.Duration
		for _, call := range calls {
			if call.At.After(from) && call.At.Before(to) {
				inDocker += time.Duration(call.Took)
				if call.Shell > 0 {
					t.shell = append(t.shell, inMilliseconds(time.Duration(call.Shell)))
				}
			}
		}
		whole := to.Sub(from)
		if i < openclawExecs {
			t.exec, t.wholeExec = append(t.exec, inMilliseconds(inDocker)), append(t.wholeExec, inMilliseconds(whole))
		} else {
			t.write, t.wholeWrite = append(t.write, inMilliseconds(inDocker)), append(t.wholeWrite, inMilliseconds(whole))
		}
	}
	return t
}

func inMilliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// removeMade removes the containers that OpenClaw made, whatever became of it.
func removeMade(ctx context.Context, home *openclawtest.Home, log string) error {
	calls, err := readCalls(log)
	if err != nil {
		return ignoreMissing(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for _, call := range calls {
		if call.Made == "" {
			continue
		}
		cmd := exec.CommandContext(ctx, home.Docker, "rm", "-f", call.Made)
		cmd.Env = append(os.Environ(), home.Env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("container %s was not removed: %w: %s", strconv.Quote(call.Made), err, out)
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
