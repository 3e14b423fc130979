package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// line is one command line of a comparison.
type line struct {
	stdin string
	args  string // see dock.say
}

// lines is a life of a container, and everything that can be asked on the way.
var lines = []line{
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
	{"", "create --name a/b IMAGE true"},
	{"", "create --name NAME --init --label a=b --label c --read-only --tmpfs /tmp --tmpfs /run:size=16m --network none --user 0:0 --cap-drop ALL" +
		" --security-opt no-new-privileges --workdir /work -v DIR:/work:z -v DIR:/again:ro,z -e A=b --env-file DIR/env IMAGE sh -c echo_started;_exec_sleep_1000"},
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
	{"", "exec --env-file DIR/env NAME sh -c echo_$OTHER"},
	{"typed", "exec -i NAME cat"},
	{"typed", "exec NAME cat"},
	{"", "exec NAME sh -c echo_out;_echo_err_>&2;_exit_7"},
	{"", "exec -u 0:0 NAME true"},
	{"", "exec NAME sh -c kill_-9_$$"},
	{"", "exec NAME touch /work/made"},
	{"", "exec NAME touch /again/made"},
	{"", "exec NAME touch /made"},
	{"", "cp NAME:/work/missing DIR/x"},
	{"", "cp DIR/missing NAME:/tmp/x"},
	{"", "cp NAME:/a NAME:/b"},
	{"", "cp DIR/a DIR/b"},
	{"", "exec -it NAME true"},
	{"", "exec -d NAME sh -c echo_detached_>/work/detached"},
	{"", "kill -s NONSENSE NAME"},
	{"", "unpause NAME"},
	{"", "kill NAME"},
	{"", "wait NAME"},
	{"", "kill NAME"},
	{"", "inspect -f {{.State.Status}}_{{.State.ExitCode}} NAME"},
	{"", "ps -a --filter name=NAME --filter status=exited --format {{.Status}}"},
	{"", "logs NAME"},
	{"", "stop NAME"},
	{"", "rm NAME"},
	{"", "rm NAME"},
	{"", "run --rm --name NAME --network none IMAGE echo hello"},
	{"some words", "run --rm -i --name NAME --network none IMAGE wc -c"},
	{"", "run --name NAME --network none IMAGE sh -c echo_out;_exit_3"},
	{"", "inspect -f {{.State.ExitCode}} NAME"},
	{"", "logs --tail 1 NAME"},
	{"", "run --name NAME --network none IMAGE echo again"},
	{"", "rm -f NAME"},
	{"", "image inspect -f {{.Os}}_{{.Architecture}}_{{json_.Config.Cmd}} IMAGE"},
	{"", "image inspect atoll-test-missing:1"},
	{"", "create --name NAME --pull never atoll-test-missing:1 true"},
	{"", "tag atoll-test-missing:1 atoll-test-other:1"},
	{"", "network inspect -f {{.Name}}_{{.Driver}} none"},
}

// questions are lines that name what is not there or cannot be, and lists that
// are filtered: what is answered depends on no machinery.
var questions = []line{
	{"", "ps extra"},
	{"", "logs"},
	{"", "port"},
	{"", "pull a b"},
	{"", "start"},
	{"", "--bogus"},
	{"", "container frob"},
	{"", "help frob"},
	{"", "restart NAME"},
	{"", "run --rm --network none -e =x IMAGE env"},
	{"", "run --rm --network none -m bogus IMAGE true"},
	{"", "run --rm --network none --cpus bogus IMAGE true"},
	{"", "run --rm --network none --ulimit bogus=1 IMAGE true"},
	{"", "run --rm --network none --ulimit nofile=x IMAGE true"},
	{"", "run --rm --network none --ulimit nofile=300:200 IMAGE true"},
	{"", "run --rm --network none --stop-signal BOGUS IMAGE true"},
	{"", "run --rm --network none -a bogus IMAGE true"},
	{"", "run -d --rm -a stdout --network none IMAGE true"},
	{"", "run -it --rm --network none IMAGE true"},
	{"", "run --rm --network none -a stdout IMAGE sh -c echo_out;_echo_err_>&2"},
	{"", "run --rm --network none -a stderr IMAGE sh -c echo_out;_echo_err_>&2"},
	{"", "run --rm --network none --cidfile DIR/id IMAGE cat /nothing"},
	{"", "run --rm --network none --cidfile DIR/id IMAGE true"},
	{"", "run --rm --network none -v ./:/work IMAGE ls /work/env"},
	{"", "run --rm --network none -u nosuch IMAGE id"},
	{"", "run --rm --network none -u 1:nosuch IMAGE id"},
	{"", "ps --filter bogus"},
	{"", "ps --filter bogus=1"},
	{"", "ps --filter status=bogus"},
	{"", "ps --filter before=NAME"},
	{"", "run -d --name NAME --network none --label a=b --label c --label-file DIR/env -v DIR:/work IMAGE sleep 1000"},
	{"", "ps -q --filter name=^NAME$"},
	{"", "ps -q --filter name=^/NAME$"},
	{"", "ps -q --filter name=NAM --filter id=zz"},
	{"", "ps -q --filter name=NAME --filter label=a --filter label=c"},
	{"", "ps -q --filter name=NAME --filter label=a --filter label=d"},
	{"", "ps -q --filter name=NAME --filter label=a=c"},
	{"", "ps -q --filter name=NAME --filter network=none --filter health=none"},
	{"", "ps -q --filter name=NAME --filter volume=DIR"},
	{"", "ps -q --filter name=NAME --filter volume=/nowhere"},
	{"", "ps -q --filter name=NAME --filter before=NAME"},
	{"", "ps -q --filter name=NAME --filter status=exited --filter status=running"},
	{"", "container ls --filter name=NAME --format table_{{.Names}}\\t{{.Image}}"},
	{"", "inspect -f {{.NetworkSettings.IPAddress}}{{.State.Health}} NAME"},
	{"", "inspect -f json atoll-test-missing"},
	{"", "images --filter reference=atoll-test-t* --format {{.Repository}}:{{.Tag}}"},
	{"", "images --filter dangling=maybe"},
	{"", "images --filter bogus=1"},
	{"", "network ls --filter driver=null --format {{.Name}}"},
	{"", "network ls --filter bogus=1"},
	{"", "info -f {{.NCPU}}_{{.MemTotal}}_{{.CgroupVersion}}_{{.Swarm.LocalNodeState}}_{{len_.ServerErrors}}"},
}

// identities are lines about who and what a container is inside.
var identities = []line{
	{"", "run --rm --name NAME --network none --hostname other.host-1 IMAGE sh -c hostname;_cat_/etc/hostname"},
	{"", "run --rm --name NAME --network none -u sandbox IMAGE sh -c id_-u;_id_-g;_echo_$HOME"},
	{"", "run --rm --name NAME --network none -u 1000:0 IMAGE sh -c id_-u;_id_-g;_echo_$HOME"},
	{"", "run --rm --name NAME --network none -u 12345 IMAGE sh -c id_-u;_id_-g;_echo_$HOME"},
	{"", "run -d --name NAME --network none -e A=1 IMAGE sleep 1000"},
	{"", "exec NAME hostname"},
	{"", "exec NAME env"},
	{"", "exec -t NAME env"},
	{"", "exec -e HOME=/x -e A=2 NAME env"},
	{"", "inspect -f {{.Config.Hostname}}_{{json_.Config.Labels}} NAME"},
	{"", "image inspect -f {{json_.Config.Labels}} IMAGE"},
}

func TestIdentitiesAreThoseOfTheRealDocker(t *testing.T) {
	t.Parallel()
	compare(t, identities, machineries())
}

// What stands in the way is named as the command line names it.
func TestProblemsAreSaidInFlags(t *testing.T) {
	t.Parallel()
	d := ourDock(t, machineries()[1])
	for line, want := range map[string]string{
		"run --rm --name NAME --memory 1k IMAGE true":     "--memory: 1024 bytes of memory are too few",
		"run --rm --name NAME --cpus 100000 IMAGE true":   "hint: set --cpus to ",
		"run --rm --name NAME --network other IMAGE true": "hint: set --network to none",
		"run --rm --name NAME -v /etc:/etc:ro IMAGE true": "hint: ",
		"run --rm --name NAME --hostname a:b IMAGE true":  "docker: invalid hostname format: a:b",
		"run --rm --name NAME -v DIR/none:/x IMAGE true":  "hint: make the directory first",
	} {
		if got := d.say("", line); got.Code != 125 || !strings.Contains(got.Err, want) || strings.Contains(got.Err, "docker.") {
			t.Errorf("docker %s: %+v, want %q and no name of a setting", line, got, want)
		}
	}
}

func TestQuestionsAreAnsweredAsByTheRealDocker(t *testing.T) {
	t.Parallel()
	compare(t, questions, machineries()[1:2])
}

// pauses are lines about a container that is held. An ordinary user cannot hold
// one without a control group of his own.
var pauses = []line{
	{"", "run -d --name NAME --network none IMAGE sleep 1000"},
	{"", "pause NAME"},
	{"", "pause NAME"},
	{"", "inspect -f {{.State.Status}}_{{.State.Running}}_{{.State.Paused}} NAME"},
	{"", "ps --filter name=NAME --format {{.Status}}"},
	{"", "exec NAME true"},
	{"", "start NAME"},
	{"", "rm NAME"},
	{"", "attach NAME"},
	{"", "unpause NAME"},
	{"", "unpause NAME"},
	{"", "exec NAME echo again"},
	{"", "pause NAME"},
	{"", "rm -f NAME"},
	{"", "inspect NAME"},
}

func TestPausesAreThoseOfTheRealDocker(t *testing.T) {
	t.Parallel()
	compare(t, pauses, machineries()[:2])
}

// Without a control group, a pause is refused and says what it takes.
func TestPauseWithoutAGroup(t *testing.T) {
	t.Parallel()
	d := ourDock(t, machineries()[2])
	d.say("", "run -d --name NAME --network none IMAGE sleep 1000")
	if got := d.say("", "pause NAME"); got.Code != 1 || !strings.Contains(got.Err, "not supported here") || !strings.Contains(got.Err, "\nhint: ") {
		t.Errorf("pause: %+v, want it refused with a hint", got)
	}
	if got := d.say("", "exec NAME echo runs"); got.Out != "runs\n" {
		t.Errorf("exec: %+v", got)
	}
}

// The same command lines, one after the other, on the real docker and on ours:
// what a program sees must be the same.
func TestDockerLinesDoWhatTheRealDockerDoes(t *testing.T) {
	t.Parallel()
	compare(t, lines, append(machineries(), podman))
}

// compare carries lines out on the real docker, and on ours over several kinds
// of machinery.
func compare(t *testing.T, lines []line, machineries []machinery) {
	t.Helper()
	theirs := recite(realDock(t), lines)
	for _, m := range machineries {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for i, got := range recite(ourDock(t, m), lines) {
				if diff := cmp.Diff(theirs[i], got); diff != "" {
					t.Errorf("docker %s (-docker +atoll):\n%s", lines[i].args, diff)
				}
			}
		})
	}
}

// recite carries lines out, in the directory that they need.
func recite(d *dock, lines []line) (all []outcome) {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, "env"), []byte("# comment\nFROM_FILE=1\nOTHER=a b\n"), 0o644); err != nil {
		d.Fatal(err)
	}
	for _, l := range lines {
		all = append(all, d.say(l.stdin, l.args))
	}
	return all
}

// A user who has a name in the image is no reason to ask for an engine.
func TestNamedUsersNeedNoEngine(t *testing.T) {
	t.Parallel()
	d := ourDock(t, machinery{"auto", "auto", 0})
	if got := d.say("", "run --rm --name NAME --network none -u sandbox IMAGE id -u"); got.Code != 0 || strings.TrimSpace(got.Out) == "0" || got.Out == "" {
		t.Errorf("%+v", got)
	}
	if got := d.say("", "run --rm --name NAME --network none -u nobody-here IMAGE true"); got.Code != 125 || !strings.Contains(got.Err, "nobody-here") {
		t.Errorf("a user that the image does not have: %+v", got)
	}
}
