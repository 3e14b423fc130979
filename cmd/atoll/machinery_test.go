//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Scripts look at sandboxes, and take them away, behind Atoll's back: on an
// engine with the engine's own program, without one by what is on the disk.

// What scripts write before lines that need an engine, limits or a program.
const (
	engineCondition  = "engine"
	limitsCondition  = "limits"
	busyboxCondition = "busybox"
)

func onEngine(ts *testscript.TestScript) bool { return ts.Getenv("BACKEND") != "linux" }

// record is the part of a sandbox's record that scripts ask for.
type record struct {
	Summary struct{ ID string }
	Life    *struct{ PID int }
}

func recordPath(ts *testscript.TestScript, name string) string {
	return filepath.Join(ts.Getenv("ATOLL_STATE_DIR"), "linux", name, "record.json")
}

func readRecord(ts *testscript.TestScript, name string) (r record) {
	text, err := os.ReadFile(recordPath(ts, name))
	ts.Check(err)
	ts.Check(json.Unmarshal(text, &r))
	return r
}

func docker(ts *testscript.TestScript, args ...string) string {
	cmd := exec.Command("docker", append([]string{"-H", ts.Getenv("DOCKER_HOST")}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		ts.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// sandboxes COUNT PREFIX: so many there are whose names begin so.
func sandboxes(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var found []string
	if onEngine(ts) {
		found = strings.Fields(docker(ts, "ps", "-aq", "--filter", "name="+args[1]))
	} else {
		found, err = filepath.Glob(recordPath(ts, args[1]+"*"))
		ts.Check(err)
	}
	if len(found) != want {
		ts.Fatalf("%d sandboxes %s*, want %d: %v", len(found), args[1], want, found)
	}
}

// identity NAME FILE: writes what only this sandbox has, and none made anew.
func identity(ts *testscript.TestScript, _ bool, args []string) {
	id := ""
	if onEngine(ts) {
		id = docker(ts, "inspect", "-f", "{{.Id}}", args[0])
	} else {
		id = readRecord(ts, args[0]).Summary.ID
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(id), 0o600))
}

// halt NAME: ends everything in a sandbox.
func halt(ts *testscript.TestScript, _ bool, args []string) {
	if onEngine(ts) {
		docker(ts, "stop", "-t", "0", args[0])
		return
	}
	pid := readRecord(ts, args[0]).Life.PID
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	for deadline := time.Now().Add(patience); runs(pid); time.Sleep(poll) {
		if time.Now().After(deadline) {
			ts.Fatalf("process %d does not end", pid)
		}
	}
}

// runs tells whether a process does anything yet.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(stat), ") ")
	return err == nil && after != "" && after[0] != 'Z' && after[0] != 'X'
}

// lose NAME: removes a sandbox, of which Atoll is told nothing.
func lose(ts *testscript.TestScript, _ bool, args []string) {
	if onEngine(ts) {
		docker(ts, "rm", "-f", args[0])
		return
	}
	if life := readRecord(ts, args[0]).Life; life != nil && runs(life.PID) {
		halt(ts, false, args)
	}
	ts.Check(os.RemoveAll(filepath.Dir(recordPath(ts, args[0]))))
}
