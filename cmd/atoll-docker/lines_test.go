package cli_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/cli"
	"github.com/atoll-run/atoll/internal/enginetest"
)

// outcome is what a command line did, as far as its caller sees it.
type outcome struct {
	Out, Err string
	Code     int
}

// dock is a docker: the real one, or ours.
type dock struct {
	name string // of the container that it works with
	run  func(stdin string, args ...string) outcome
}

func realDock(t *testing.T, name string) *dock {
	t.Helper()
	host := enginetest.Docker(t)
	return &dock{name, func(stdin string, args ...string) (got outcome) {
		var out, problems bytes.Buffer
		cmd := exec.Command("docker", args...)
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+host)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &problems
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatalf("docker: %v (scripts/deps.sh installs it)", err)
		}
		return outcome{out.String(), problems.String(), cmd.ProcessState.ExitCode()}
	}}
}

func ourDock(t *testing.T, name, state string) *dock {
	t.Helper()
	env := map[string]string{"ATOLL_STATE_DIR": state, "DOCKER_HOST": enginetest.Docker(t), "PATH": os.Getenv("PATH"), "ATOLL_CONFIG": dockerBackend(t)}
	return &dock{name, func(stdin string, args ...string) outcome {
		var out, problems bytes.Buffer
		code := cli.Docker(t.Context(), args, &cli.Terminal{
			In: strings.NewReader(stdin), Out: &out, Err: &problems, Getenv: func(name string) string { return env[name] },
		})
		return outcome{out.String(), problems.String(), code}
	}}
}

// dockerBackend is a configuration that leaves no choice.
func dockerBackend(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "atoll.json5")
	if err := os.WriteFile(path, []byte(`{agents: {defaults: {sandbox: {backend: "docker"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	ids     = regexp.MustCompile(`[0-9a-f]{64}`)
	shortID = regexp.MustCompile(`\b[0-9a-f]{12}\b`)
	lengths = regexp.MustCompile(`(Less than a second|About a minute|[0-9]+ (second|minute)s?)`)
	moments = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)
)

// plain is an outcome without what differs from one container to the next.
func (d *dock) plain(o outcome) outcome {
	clean := func(text string) string {
		text = strings.ReplaceAll(text, d.name, "NAME")
		text = lengths.ReplaceAllString(moments.ReplaceAllString(text, "MOMENT"), "LENGTH")
		return shortID.ReplaceAllString(ids.ReplaceAllString(text, "ID"), "SHORT")
	}
	return outcome{clean(o.Out), clean(o.Err), o.Code}
}

// The same command lines, one after the other, on the real docker and on ours:
// what a program sees must be the same.
func TestDockerLinesDoWhatTheRealDockerDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	envFile := filepath.Join(dir, "env")
	if err := os.WriteFile(envFile, []byte("# comment\nFROM_FILE=1\nOTHER=a b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := []struct {
		stdin string
		args  string // separated by spaces; _ stands for one
	}{
		{"", "inspect -f {{.State.Running}} NAME"},
		{"", "inspect --type container NAME"},
		{"", "start NAME"},
		{"", "exec NAME true"},
		{"", "rm NAME"},
		{"", "rm -f NAME"},
		{"", "stop NAME"},
		{"", "kill NAME"},
		{"", "logs NAME"},
		{"", "wait NAME"},
		{"", "pause NAME"},
		{"", "port NAME"},
		{"", "network inspect NAME"},
		{"", "frob"},
		{"", "create"},
		{"", "exec NAME"},
		{"", "exec --bogus NAME true"},
		{"", "create --bogus x"},
		{"", "ps --bogus"},
		{"", "ps -Z"},
		{"", "create --name"},
		{"", "create --name a/b " + enginetest.TinyImage + " true"},
		{"", "create --name NAME --init --label a=b --label c --read-only --tmpfs /tmp --tmpfs /run:size=16m --network none --user 0:0 --cap-drop ALL" +
			" --security-opt no-new-privileges --workdir /work -v " + dir + ":/work:z -v " + dir + ":/again:ro,z -e A=b --env-file " + envFile + " " +
			enginetest.TinyImage + " sh -c echo_started;_exec_sleep_1000"},
		{"", "inspect -f {{.State.Status}}_{{.State.Running}}_{{.State.ExitCode}} NAME"},
		{"", "exec NAME true"},
		{"", "ps --filter name=NAME"},
		{"", "ps -a --filter name=NAME --format {{.Names}}_{{.Image}}_{{.State}}_{{.Command}}"},
		{"", "start NAME"},
		{"", "start NAME"},
		{"", "inspect -f {{.State.Running}} NAME"},
		{"", "inspect --format {{.Id}} NAME"},
		{"", "inspect --format {{.Name}}_{{.Path}}_{{.Args}} NAME"},
		{"", `inspect --format {"Mounts":{{range_.Mounts}}{{if_eq_.Destination_"/work"}}{{json_.}}{{end}}{{end}},"Tmpfs":{{json_.HostConfig.Tmpfs}}} NAME`},
		{"", `inspect --format {{range_.Mounts}}{{if_eq_.Destination_"/again"}}{{json_.}}{{end}}{{end}} NAME`},
		{"", `inspect -f {{index_.Config.Labels_"a"}} NAME`},
		{"", "inspect -f {{range_.Config.Env}}{{println_.}}{{end}} NAME"},
		{"", "inspect -f {{.Config.Image}}_{{.Config.WorkingDir}}_{{.Config.User}}_{{json_.Config.Cmd}}_{{json_.Config.Entrypoint}} NAME"},
		{"", "inspect -f {{len_.HostConfig.Binds}}_{{.HostConfig.NetworkMode}}_{{.HostConfig.ReadonlyRootfs}}_{{.HostConfig.Init}} NAME"},
		{"", "inspect -f {{.Nonsense}} NAME"},
		{"", "inspect -f {{.State NAME"},
		{"", "ps --filter name=NAME --format {{json_.Names}}-{{.Networks}}-{{.Ports}}"},
		{"", "ps -q --no-trunc --filter name=NAME"},
		{"", "logs NAME"},
		{"", "port NAME"},
		{"", "rm NAME"},
		{"", "exec NAME sh -c pwd;_echo_$A-$FROM_FILE-$OTHER-$HOME;_id_-u"},
		{"", "exec -e A=c -e EMPTY= -w / NAME sh -c pwd;_echo_$A-$EMPTY"},
		{"", "exec --env-file " + envFile + " NAME sh -c echo_$OTHER"},
		{"typed", "exec -i NAME cat"},
		{"typed", "exec NAME cat"},
		{"", "exec NAME sh -c echo_out;_echo_err_>&2;_exit_7"},
		{"", "exec -u 0:0 NAME true"},
		{"", "exec NAME sh -c kill_-9_$$"},
		{"", "exec NAME touch /work/made"},
		{"", "exec NAME touch /again/made"},
		{"", "exec NAME touch /made"},
		{"", "cp NAME:/work/missing " + dir + "/x"},
		{"", "kill -s NONSENSE NAME"},
		{"", "pause NAME"},
		{"", "exec NAME true"},
		{"", "unpause NAME"},
		{"", "unpause NAME"},
		{"", "exec NAME true"},
		{"", "kill NAME"},
		{"", "wait NAME"},
		{"", "kill NAME"},
		{"", "inspect -f {{.State.Status}}_{{.State.ExitCode}} NAME"},
		{"", "ps -a --filter name=NAME --filter status=exited --format {{.Status}}"},
		{"", "logs NAME"},
		{"", "stop NAME"},
		{"", "rm NAME"},
		{"", "rm NAME"},
		{"", "run --rm --name NAME --network none " + enginetest.TinyImage + " echo hello"},
		{"some words", "run --rm -i --name NAME --network none " + enginetest.TinyImage + " wc -c"},
		{"", "run --name NAME --network none " + enginetest.TinyImage + " sh -c echo_out;_exit_3"},
		{"", "inspect -f {{.State.ExitCode}} NAME"},
		{"", "logs --tail 1 NAME"},
		{"", "run --name NAME --network none " + enginetest.TinyImage + " echo again"},
		{"", "rm -f NAME"},
		{"", "image inspect -f {{.Os}}_{{.Architecture}}_{{json_.Config.Cmd}} " + enginetest.TinyImage},
		{"", "image inspect atoll-test-missing:1"},
		{"", "create --name NAME --pull never atoll-test-missing:1 true"},
		{"", "tag atoll-test-missing:1 atoll-test-other:1"},
		{"", "network inspect -f {{.Name}}_{{.Driver}} none"},
	}
	theirs, ours := realDock(t, "atoll-cmp-real-"+suffix()), ourDock(t, "atoll-cmp-ours-"+suffix(), t.TempDir())
	for _, d := range []*dock{theirs, ours} {
		t.Cleanup(func() { d.run("", "rm", "-f", d.name) })
	}
	for _, line := range lines {
		results := [2]outcome{}
		for i, d := range []*dock{theirs, ours} {
			var args []string
			for field := range strings.FieldsSeq(line.args) {
				args = append(args, strings.ReplaceAll(strings.ReplaceAll(field, "_", " "), "NAME", d.name))
			}
			results[i] = d.plain(d.run(line.stdin, args...))
		}
		if diff := cmp.Diff(results[0], results[1]); diff != "" {
			t.Errorf("docker %s (-docker +atoll):\n%s", line.args, diff)
		}
	}
}

func suffix() string { return strings.ToLower(rand.Text()[:10]) }
