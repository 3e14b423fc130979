//go:build linux

package limatest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// sandbox is a virtual machine that is a sandbox of Atoll: one whose root can be written,
// and from which package repositories are reached.
type sandbox struct {
	world string // file of what is around it
}

// surroundings are what virtual machines that are sandboxes have around them.
type surroundings struct {
	Program  string            `json:"program"` // atoll
	State    string            `json:"state"`   // its state directory, in which the image is
	Image    string            `json:"image"`
	Allow    []string          `json:"allow"`    // rules of egress
	Upstream string            `json:"upstream"` // proxy that egress goes through
	Services []int             `json:"services"` // ports of this machine that are seen inside
	Env      map[string]string `json:"env"`
	Files    map[string]string `json:"files"` // that a new virtual machine has, by path
}

func (s sandbox) around() (a surroundings, err error) {
	text, err := os.ReadFile(s.world)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

// start makes the sandbox the first time, with the stand-ins in it.
func (s sandbox) start(name string) error {
	dir := dirOf(name)
	if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
		return nil
	}
	a, err := s.around()
	if err != nil {
		return err
	}
	if err := a.configure(dir); err != nil {
		return err
	}
	files, err := a.files()
	if err != nil {
		return err
	}
	if err := a.run(dir, "/", files, "tar", "-xf", "-", "-C", "/"); err != nil {
		return fmt.Errorf("the files of the virtual machine: %w", err)
	}
	if err := a.run(dir, "/", nil, "sh", "-euc", "apt-get -q update && apt-get -q -y install --no-install-recommends fakeroot"); err != nil {
		return fmt.Errorf("fakeroot: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "ready"), nil, 0o600)
}

// configure writes the configuration of the sandbox.
func (a *surroundings) configure(dir string) error {
	list, err := declared(dir)
	if err != nil {
		return err
	}
	binds := []string{}
	for _, m := range list {
		mode := "ro"
		if m.Writable {
			mode = "rw"
		}
		binds = append(binds, m.Location+":"+m.MountPoint+":"+mode)
	}
	type object = map[string]any
	text, err := json.Marshal(object{"agents": object{"defaults": object{"sandbox": object{
		"mode": "all", "backend": "linux", "scope": "session", "workspaceAccess": "none",
		"docker": object{"image": a.Image, "readOnlyRoot": false, "user": "0:0", "binds": binds, "dangerouslyAllowExternalBindSources": true, "memory": "3g", "pidsLimit": 2048, "env": a.Env},
		"egress": object{"mode": "enforce", "allow": a.Allow, "upstream": a.Upstream, "services": a.Services},
	}}}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "atoll.json5"), text, 0o600)
}

// files returns the tar of the files that a new virtual machine has.
func (a *surroundings) files() (io.Reader, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(path string, mode int64, text string) error {
		err := w.WriteHeader(&tar.Header{Name: path, Mode: mode, Size: int64(len(text))})
		_, bad := io.WriteString(w, text)
		return errors.Join(err, bad)
	}
	for path, text := range a.Files {
		if err := add(path, 0o644, text); err != nil {
			return nil, err
		}
	}
	entries, err := standIns.ReadDir("standins")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := standIns.ReadFile("standins/" + e.Name())
		if err != nil {
			return nil, err
		}
		if err := add(standInDir+"/"+e.Name(), 0o755, string(text)); err != nil {
			return nil, err
		}
	}
	return &b, w.Close()
}

// session names the sandbox of a virtual machine.
func session(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "agent:main:" + hex.EncodeToString(sum[:6])
}

// atoll returns a command line of atoll.
func (a *surroundings) atoll(dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), a.Program, append([]string{"--config", filepath.Join(dir, "atoll.json5")}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "ATOLL_STATE_DIR="+a.State)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// run runs a command inside.
func (a *surroundings) run(dir, workdir string, in io.Reader, argv ...string) error {
	cmd := a.atoll(dir, append([]string{"run", "--session", session(dir), "--workdir", workdir, "--env", "PATH=" + searchPath, "--env", "HOME=/root", "--"}, argv...)...)
	cmd.Stdin = in
	return cmd.Run()
}

func (s sandbox) shell(name, workdir string, argv []string) error {
	a, err := s.around()
	if err != nil {
		return err
	}
	if argv[0] == "sudo" {
		argv = argv[1:]
	}
	return a.run(dirOf(name), workdir, os.Stdin, append([]string{standInDir + "/as-root"}, argv...)...)
}

// end stops the sandbox; its files stay until the world ends.
func (s sandbox) end(name string) error {
	a, err := s.around()
	if err != nil {
		return err
	}
	return a.atoll(dirOf(name), "stop", "--force", session(dirOf(name))).Run()
}
