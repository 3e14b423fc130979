package vm

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/vm/steps"
)

const (
	maxSecrets = 1 << 20
	maxProgram = 512 << 20
)

// setup reads what the steps need of this machine.
func (m *Manager) setup() (*steps.Setup, error) {
	s := &steps.Setup{Profile: &m.Profile, NeedsDocker: m.NeedsDocker, NodeKey: m.NodeKey}
	var err error
	if s.Secrets, err = m.secrets(); err != nil {
		return nil, err
	}
	if s.Program, err = m.program(); err != nil {
		return nil, err
	}
	s.Plugins, err = m.plugins()
	return s, err
}

// home replaces ~ in a path.
func (m *Manager) home(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(m.Host.Home, rest)
	}
	return path
}

// secrets returns the lines of the first source that has any: the named file, else
// OpenClaw's own. They are never merged.
func (m *Manager) secrets() ([]byte, error) {
	if m.Profile.Secrets != "" {
		return readSecrets(m.home(m.Profile.Secrets))
	}
	text, err := readSecrets(filepath.Join(m.Host.Home, ".openclaw", ".env"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

var secretLine = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=[^\x00]*$`)

// readSecrets reads a file that only its owner can read and that has NAME=value lines.
func readSecrets(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errhint.With(fmt.Errorf("secrets: %w", err), "name a file that exists, or remove the key secrets")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, errhint.With(fmt.Errorf("secrets: others can read %s", path), "run chmod 600 "+path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecrets+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSecrets {
		return nil, fmt.Errorf("secrets: %s is larger than %d bytes", path, maxSecrets)
	}
	return parseSecrets(path, text)
}

// parseSecrets keeps the lines that set a variable. A line that does not is refused by
// its number: it may be half of a secret.
func parseSecrets(path string, text []byte) ([]byte, error) {
	var out bytes.Buffer
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !secretLine.MatchString(line):
			return nil, errhint.With(fmt.Errorf("secrets: line %d of %s is not NAME=value", number, path), "write one variable a line")
		default:
			out.WriteString(line + "\n")
		}
	}
	return out.Bytes(), nil
}

// program reads the program for Linux, and refuses one of another system or processor.
func (m *Manager) program() ([]byte, error) {
	path, hint := m.home(m.Profile.Program), "set program in the profile to the program atoll for linux/"+m.Arch
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		if path = filepath.Join(filepath.Dir(self), "atoll-linux-"+m.Arch); m.System == "linux" {
			path = self
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errhint.With(fmt.Errorf("the program for the virtual machine: %w", err), hint)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxProgram))
	if err != nil {
		return nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(text))
	machines := map[string]elf.Machine{"arm64": elf.EM_AARCH64, "amd64": elf.EM_X86_64}
	if err != nil || file.Machine != machines[m.Arch] {
		return nil, errhint.With(fmt.Errorf("%s is no program for linux/%s", path, m.Arch), hint)
	}
	return text, nil
}

// plugins reads the plug-ins whose roles are on.
func (m *Manager) plugins() (list []steps.Step, err error) {
	roles := m.Profile.Roles
	for _, role := range []struct {
		name string
		on   bool
	}{{"cadence", roles.Cadence}, {"buildlog", roles.Buildlog}, {"qortex", roles.Qortex}} {
		if !role.on {
			continue
		}
		if m.Profile.Mounts.Provision == "" {
			return nil, errhint.With(fmt.Errorf("roles.%s is on, and mounts.provision is missing", role.name), "name the directory of plug-ins")
		}
		step, err := steps.Plugin(m.home(m.Profile.Mounts.Provision), role.name)
		if err != nil {
			return nil, err
		}
		list = append(list, step)
	}
	return list, nil
}
