package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/vm/lima"
	"github.com/atoll-run/atoll/internal/vm/profile"
)

const (
	yamlName = "lima.yaml"
	madeName = "made.json"
)

// Manager works on the virtual machine of one profile.
type Manager struct {
	Profile     vmkeys.Profile
	Host        profile.Host
	StateDir    string // of Atoll
	System      string // GOOS
	Arch        string // GOARCH
	Log         io.Writer
	Getenv      func(string) string
	NeedsDocker bool   // the configuration does
	NodeKey     []byte // of steps.Setup

	vm *lima.VM
}

// Made is what a virtual machine was made with.
type Made struct {
	Lima    string          `json:"lima"` // version
	Profile vmkeys.Profile  `json:"profile"`
	Mounts  []profile.Mount `json:"mounts"`
}

// InstanceName returns the name that Lima knows the virtual machine by.
func (m *Manager) InstanceName() string { return "atoll-" + m.Profile.Name }

// dir is where the files about the virtual machine are.
func (m *Manager) dir() string { return filepath.Join(m.StateDir, "vm", m.Profile.Name) }

// YAMLPath returns where the file for Lima is.
func (m *Manager) YAMLPath() string { return filepath.Join(m.dir(), yamlName) }

// open finds limactl and checks its version.
func (m *Manager) open(ctx context.Context) (*lima.VM, lima.Version, error) {
	if m.System == "windows" {
		return nil, lima.Version{}, errhint.With(errors.New("virtual machines are made on macOS and Linux"), "on Windows run atoll for Linux in WSL 2, or work with a gateway: `atoll context add`")
	}
	program, err := lima.Find()
	if err != nil {
		return nil, lima.Version{}, err
	}
	m.vm = &lima.VM{Program: program, Name: m.InstanceName(), Log: m.Log}
	version, err := m.vm.Version(ctx)
	if err == nil {
		err = version.Check()
	}
	return m.vm, version, err
}

// ErrNone is the cause of an error about a virtual machine that is not there.
var ErrNone = errors.New("there is no virtual machine")

// running returns the virtual machine if it runs.
func (m *Manager) running(ctx context.Context) (*lima.VM, lima.Instance, error) {
	v, _, err := m.open(ctx)
	if err != nil {
		return nil, lima.Instance{}, err
	}
	i, err := v.Look(ctx)
	switch {
	case err != nil:
		return nil, i, err
	case i.Status == "":
		return nil, i, errhint.With(fmt.Errorf("%w %s", ErrNone, v.Name), "make it with `atoll vm up`")
	case i.Status != lima.Running:
		return v, i, errhint.With(fmt.Errorf("%s is %s", v.Name, strings.ToLower(i.Status)), "start it with `atoll vm up`")
	}
	return v, i, nil
}

// Runs reports whether the virtual machine runs.
func (m *Manager) Runs(ctx context.Context) bool {
	_, _, err := m.running(ctx)
	return err == nil
}

// made returns what the virtual machine was made with; nil if that is not known.
func (m *Manager) made() (*Made, error) {
	text, err := os.ReadFile(filepath.Join(m.dir(), madeName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	was := &Made{}
	return was, json.Unmarshal(text, was)
}

// write writes a file of the virtual machine, for its owner only.
func (m *Manager) write(name string, text []byte) error {
	if err := os.MkdirAll(m.dir(), 0o700); err != nil {
		return err
	}
	path := filepath.Join(m.dir(), name)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
