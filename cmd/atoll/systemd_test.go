//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

const (
	unitName = "atoll-gateway.service"
	unitDir  = "../../deploy/systemd/"
)

// The unit is one that systemd takes without a word, alone and with the drop-in
// for Docker.
func TestSystemdUnit(t *testing.T) {
	unit := readUnit(t, unitName)
	for _, dropIn := range []string{"", "docker.conf"} {
		t.Run("with "+dropIn, func(t *testing.T) {
			dir := t.TempDir()
			// The program is where packages put it; here only the rest is looked at.
			write(t, filepath.Join(dir, unitName), strings.Replace(unit, "/usr/local/bin/atoll ", "/bin/true ", 1))
			if dropIn != "" {
				write(t, filepath.Join(dir, unitName+".d", dropIn), readUnit(t, unitName+".d/"+dropIn))
				write(t, filepath.Join(dir, "docker.service"), "[Service]\nExecStart=/bin/true\n")
			}
			cmd := exec.CommandContext(t.Context(), systemdAnalyze(t), "verify", "--man=no", filepath.Join(dir, unitName))
			cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "SYSTEMD_LOG_LEVEL=warning")
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), unitName) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestSystemdUnitKeepsItsPromises(t *testing.T) {
	unit := readUnit(t, unitName)
	for _, line := range []string{
		"WorkingDirectory=/var/lib/atoll", "EnvironmentFile=-/etc/atoll/gateway.env", "ExecStart=/usr/local/bin/atoll gateway --grace 60s",
		"ExecReload=/bin/kill -HUP $MAINPID", "NoNewPrivileges=yes", "UMask=0077", "User=atoll",
	} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	if strings.Contains(unit, "docker") {
		t.Error("the unit is for every backend: Docker's group belongs in its drop-in")
	}
	if !strings.Contains(readUnit(t, unitName+".d/docker.conf"), "\nSupplementaryGroups=docker\n") {
		t.Error("the drop-in does not give the group")
	}
}

// systemdAnalyze returns the program that checks units. It works in /tmp, whatever
// TMPDIR says.
func systemdAnalyze(t *testing.T) string {
	t.Helper()
	if err := unix.Access("/tmp", unix.W_OK); err != nil {
		need.Missing(t, fmt.Errorf("systemd-analyze writes to /tmp: %w", err))
	}
	return need.Program(t, "systemd-analyze", "systemd")
}

func readUnit(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(unitDir + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The unit that keeps the copy of the repository is one that systemd takes.
func TestSystemdRepoUnit(t *testing.T) {
	const name = "atoll-repo.service"
	dir := t.TempDir()
	write(t, filepath.Join(dir, name), strings.Replace(readUnit(t, name), "/usr/local/bin/atoll ", "/bin/true ", 1))
	cmd := exec.CommandContext(t.Context(), systemdAnalyze(t), "verify", "--man=no", filepath.Join(dir, name))
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "SYSTEMD_LOG_LEVEL=warning")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), name) {
		t.Errorf("%v\n%s", err, out)
	}
}
