//go:build linux

// Package limatest is a limactl for tests. It keeps its virtual machines as directories.
// What a virtual machine is depends: a sandbox of Atoll with a root of its own that can be
// written, made from an image of Debian, whose packages come through egress; or, where
// sandboxes are to be made inside, a mount namespace with this machine's files below.
// systemctl, nft and mount inside check and note what they were asked.
package limatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The variables of the stand-in.
const (
	HomeVariable    = "LIMA_HOME"        // where virtual machines are
	VersionVariable = "LIMA_VERSION"     // what --version says
	GatewayVariable = "LIMATEST_GATEWAY" // has the gateway's unit really run, in a mount namespace
	insideVariable  = "LIMATEST_INSIDE"
)

// Install puts a limactl into a directory that is the calling test program, whose
// TestMain calls Main if its name is limactl.
func Install(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return os.Symlink(self, filepath.Join(dir, "limactl"))
}

// Called reports whether this process was started as limactl.
func Called() bool { return filepath.Base(os.Args[0]) == "limactl" }

// Main is the program limactl; it returns the exit code.
func Main(args []string) int {
	err := run(args)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "limactl:", err)
		return 1
	}
	return 0
}

// run carries out one command line.
func run(args []string) error {
	if dir := os.Getenv(insideVariable); dir != "" {
		return inside(dir)
	}
	if slices.Equal(args, []string{"--version"}) {
		fmt.Fprintln(os.Stdout, "limactl version", os.Getenv(VersionVariable))
		return nil
	}
	name := args[len(args)-1]
	switch args[0] {
	case "list":
		return list()
	case "create":
		return create(strings.TrimPrefix(args[2], "--name="), name)
	case "start":
		return errors.Join(setState(name, "Running"), machine().start(name))
	case "stop":
		return errors.Join(setState(name, "Stopped"), machine().end(name))
	case "delete":
		return errors.Join(machine().end(name), os.RemoveAll(dirOf(name)))
	case "sshd":
		return sshd(name)
	case "shell":
		return machine().shell(args[2], strings.TrimPrefix(args[1], "--workdir="), args[3:])
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// kind is what a virtual machine is.
type kind interface {
	start(name string) error
	end(name string) error
	shell(name, workdir string, argv []string) error
}

// machine returns what virtual machines are in this test.
func machine() kind {
	if path := os.Getenv(worldVariable); path != "" {
		return sandbox{path}
	}
	return namespace{}
}

func dirOf(name string) string { return filepath.Join(os.Getenv(HomeVariable), name) }

func list() error {
	entries, err := os.ReadDir(os.Getenv(HomeVariable))
	if err != nil {
		return err
	}
	for _, e := range entries {
		state, err := os.ReadFile(filepath.Join(dirOf(e.Name()), "state"))
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"name": e.Name(), "status": string(state), "dir": dirOf(e.Name())}); err != nil {
			return err
		}
	}
	return nil
}

func create(name, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, dir := range []string{"upper", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(dirOf(name), dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dirOf(name), "lima.yaml"), text, 0o600); err != nil {
		return err
	}
	return errors.Join(createSSH(name), setState(name, "Stopped"))
}

func setState(name, state string) error {
	return os.WriteFile(filepath.Join(dirOf(name), "state"), []byte(state), 0o600)
}

// mount is a directory that a Lima file declares.
type mount struct {
	Location   string `yaml:"location"`
	MountPoint string `yaml:"mountPoint"`
	Writable   bool   `yaml:"writable"`
}

// declared returns the directories of the Lima file of a virtual machine.
func declared(dir string) ([]mount, error) {
	text, err := os.ReadFile(filepath.Join(dir, "lima.yaml"))
	if err != nil {
		return nil, err
	}
	var file struct {
		Mounts []mount `yaml:"mounts"`
	}
	err = yaml.Unmarshal(text, &file)
	return file.Mounts, err
}
