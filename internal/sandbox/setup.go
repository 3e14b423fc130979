package sandbox

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

// setupTail is how much of a failed set-up's output its error shows.
const setupTail = 2000

// SetupEgress is what a set-up command reaches by names.
type SetupEgress interface {
	GrantID() string // that the command is started under
	Environment() map[string]string
	AllDenials() []string // a line each
	Close() error
}

func (m *Manager) runSetup(ctx context.Context, spec *Spec, mach *machine.Machine) error {
	m.Checkpoint("before setup")
	env, err := m.setupEnv(ctx, spec, mach)
	if err != nil {
		return err
	}
	out := &tailbuf.Writer{Most: setupTail}
	command := &machine.Command{Shell: spec.SetupCommand, Env: env, Dir: spec.Workdir, Stdout: out, Stderr: out, Timeout: m.SetupTimeout}
	end, err := m.giveEgress(ctx, spec, mach, command)
	if err != nil {
		return fmt.Errorf("setupCommand: %w", err)
	}
	res, err := mach.Exec(ctx, command)
	if ended := end(out); err == nil {
		err = ended
	}
	switch {
	case err != nil:
		return fmt.Errorf("setupCommand: %w", err)
	case res.TimedOut:
		return errhint.With(fmt.Errorf("setupCommand was ended after %v%s", m.SetupTimeout, outputTail(out)), "make it shorter, or build it into an image")
	case res.ExitCode != 0 || res.Signal != "":
		return errhint.With(fmt.Errorf("setupCommand failed with exit code %d%s", res.ExitCode, outputTail(out)), setupHint(spec, outputTail(out)))
	}
	return nil
}

// giveEgress has the set-up command reach what the sandbox's commands reach. The returned
// function ends that, and writes what was denied to the output.
func (m *Manager) giveEgress(ctx context.Context, spec *Spec, mach *machine.Machine, command *machine.Command) (end func(io.Writer) error, err error) {
	none := func(io.Writer) error { return nil }
	if m.SetupEgress == nil {
		return none, nil
	}
	egress, err := m.SetupEgress(ctx, spec, mach)
	if err != nil || egress == nil {
		return none, err
	}
	command.Grant = egress.GrantID()
	command.Env = append(EnvList(egress.Environment()), command.Env...)
	return func(out io.Writer) error {
		for _, line := range egress.AllDenials() {
			fmt.Fprintln(out, line)
		}
		return egress.Close()
	}, nil
}

// aptConfig is the file in the sandbox that lets apt download as root. apt
// reads it only where APT_CONFIG names it.
const aptConfig = "/etc/apt/atoll-setup.conf"

// aptPrepare writes aptConfig, and removes the empty directories for downloads
// that belong to the user _apt: root without capabilities cannot write to them,
// and apt makes them again. It fails where there is no apt, or no right to write.
const aptPrepare = `test -w /etc/apt || exit 1
for dir in /var/cache/apt/archives/partial /var/lib/apt/lists/partial /var/lib/apt/lists/auxfiles; do
	test -w "$dir" || rmdir "$dir" 2>/dev/null
done
echo 'APT::Sandbox::User "root";' >` + aptConfig

// setupEnv returns the environment of the set-up command. Where root has no
// capability to change its user, apt is configured not to try.
func (m *Manager) setupEnv(ctx context.Context, spec *Spec, mach *machine.Machine) ([]string, error) {
	env := EnvList(spec.Env)
	_, configured := spec.Env["APT_CONFIG"]
	if configured || spec.ReadOnlyRoot || !spec.mayBeRoot() || !spec.drops("SETUID", "SETGID") {
		return env, nil
	}
	res, err := mach.Exec(ctx, &machine.Command{Argv: []string{"/bin/sh", "-c", aptPrepare}, Env: env, Dir: "/", Timeout: m.SetupTimeout})
	switch {
	case err != nil:
		return nil, fmt.Errorf("preparing apt for setupCommand: %w", err)
	case res.ExitCode == 0 && res.Signal == "":
		env = append(env, "APT_CONFIG="+aptConfig)
	}
	return env, nil
}

// installCapDrop is a value of capDrop that leaves the capabilities to change
// owners, groups and users, which packages that make accounts need.
const installCapDrop = `["AUDIT_WRITE", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETPCAP", "SYS_CHROOT"]`

// setupHint returns what to do about a set-up command that failed with output.
func setupHint(spec *Spec, output string) string {
	refused := strings.Contains(output, "Operation not permitted") || strings.Contains(output, "failure while writing changes to /etc/")
	if refused && spec.mayBeRoot() && spec.drops("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID") {
		return "accounts and files of other users need capabilities: set sandbox.docker.capDrop to " + installCapDrop + ", or build it into an image"
	}
	return "run it by hand with `atoll run --rm -- sh -c …`, or build it into an image"
}

// mayBeRoot reports whether commands run as root, or as a user that only the image knows.
func (s *Spec) mayBeRoot() bool {
	name, _, _ := strings.Cut(s.User, ":")
	return name == "root" || strings.Trim(name, "0") == ""
}

// drops reports whether CapDrop takes one of these capabilities.
func (s *Spec) drops(names ...string) bool {
	return slices.ContainsFunc(s.CapDrop, func(written string) bool {
		name := strings.TrimPrefix(strings.ToUpper(written), "CAP_")
		return name == "ALL" || slices.Contains(names, name)
	})
}
