package steps

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/deploy/systemd"
	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/vm/profile"
)

// Places inside the virtual machine.
const (
	EnvFile      = "/etc/atoll/gateway.env"
	ConfigFile   = "/etc/atoll/atoll.json5"
	FirewallFile = "/etc/atoll/firewall.nft"
	ProgramFile  = "/usr/local/bin/atoll"
	unitDir      = "/etc/systemd/system/"
	gatewayUnit  = "atoll-gateway.service"
	gatewayUser  = "atoll"
	gatewayHome  = "/var/lib/atoll"
)

// Setup is what the steps are made from.
type Setup struct {
	Profile     *vmkeys.Profile
	Secrets     []byte // NAME=value lines; nil if there are none
	Program     []byte // atoll for Linux
	NeedsDocker bool   // the configuration does
	Plugins     []Step
	NodeKey     []byte // signs the packages of Node.js; nil is that of NodeSource
}

// docker reports whether Docker is installed.
func (s *Setup) docker() bool {
	d := s.Profile.Docker
	return d == vmkeys.DockerTrue || d == vmkeys.DockerAuto && (s.NeedsDocker || s.Profile.OpenClaw)
}

func (s *Setup) overlay() bool { return s.Profile.Mode != vmkeys.ModeDirect }

// unless returns why a step is not needed, if it is not.
func unless(needed bool, why string) string {
	if needed {
		return ""
	}
	return why
}

// List returns the twelve steps in the order of the documents.
func (s *Setup) List() []Step {
	list := []Step{s.secrets(), s.overlayStep(), s.dockerStep(), s.ghCLI(), s.gateway(), s.firewall(), s.tailscale()}
	list = append(list, s.plugins()...)
	return append(list, s.sandbox(), s.syncGate())
}

func (s *Setup) secrets() Step {
	return Step{Name: "secrets", Skip: unless(s.Secrets != nil, "no secrets are named"), Actions: []Action{file(EnvFile, "0600", s.Secrets)}}
}

// overlayStep keeps changes of services apart from the read-only directories. Agents in
// sandboxes have overlays of their own.
func (s *Setup) overlayStep() Step {
	step := Step{Name: "overlay", Needs: []string{"secrets"}, Skip: unless(s.overlay(), "mode is direct")}
	step.mountOverlay(profile.ProjectPoint, profile.OverlayDir, profile.WorkspaceDir)
	if s.Profile.Mounts.Vault != "" {
		step.mountOverlay(profile.VaultPoint, profile.VaultOverlayDir, profile.VaultWorkspaceDir)
	}
	return step
}

// mountOverlay adds an overlay of the kernel, as a unit.
func (s *Step) mountOverlay(lower, dir, at string) {
	unit := mountUnit(at)
	s.Actions = append(s.Actions, systemUser(gatewayUser, gatewayHome), directory(dir+"/upper", gatewayUser+":"+gatewayUser, "0755"), directory(dir+"/work", "root:root", "0755"), directory(at, "root:root", "0755").unlessMounted(at),
		file(unitDir+unit, "0644", []byte(fmt.Sprintf(`# Written by atoll vm.
[Unit]
Description=Changes on %[1]s, kept apart
RequiresMountsFor=%[1]s %[2]s

[Mount]
What=overlay
Where=%[3]s
Type=overlay
Options=lowerdir=%[1]s,upperdir=%[2]s/upper,workdir=%[2]s/work

[Install]
WantedBy=multi-user.target
`, lower, dir, at))))
	s.After = append(s.After, service(unit))
}

// unlessMounted leaves a directory alone that something is mounted on.
func (a Action) unlessMounted(at string) Action {
	a.Check = "mountpoint -q " + at + " || { " + a.Check + "; }"
	return a
}

// mountUnit returns the name of the unit that mounts a directory of one name.
func mountUnit(at string) string {
	return strings.ReplaceAll(strings.TrimPrefix(at, "/"), "-", `\x2d`) + ".mount"
}

func (s *Setup) dockerStep() Step {
	return Step{Name: "docker", Needs: []string{"secrets"}, Skip: unless(s.docker(), "not needed"), Actions: []Action{packages("docker.io"), service("docker.service")}}
}

func (s *Setup) ghCLI() Step {
	return Step{Name: "gh-cli", Skip: unless(s.Profile.Roles.GhCLI, "roles.ghCli is off"), Actions: []Action{packages("gh")}}
}

// gateway installs the program, its configuration and its unit; and OpenClaw where the
// profile asks for it.
func (s *Setup) gateway() Step {
	step := Step{Name: "gateway", Needs: []string{"secrets", "overlay", "docker"}}
	if s.Profile.OpenClaw {
		step.Actions = append(step.Actions, s.nodeJS()...)
		step.Actions = append(step.Actions, openClaw())
	}
	step.Actions = append(step.Actions,
		systemUser(gatewayUser, gatewayHome), file(ProgramFile, "0755", s.Program),
		ownedFile(ConfigFile, "root:"+gatewayUser, "0640", s.config()),
		file(unitDir+gatewayUnit, "0644", []byte(systemd.GatewayUnit)), file(unitDir+gatewayUnit+".d/vm.conf", "0644", s.dropIn()))
	if s.docker() {
		step.Actions = append(step.Actions, file(unitDir+gatewayUnit+".d/docker.conf", "0644", []byte(systemd.DockerDropIn)))
	}
	step.Actions = append(step.Actions, userNamespaces())
	step.After = []Action{service(gatewayUnit)}
	return step
}

// dropIn is what the gateway's unit has in a virtual machine.
func (s *Setup) dropIn() []byte {
	workspace := profile.Workspace(s.Profile)
	var b strings.Builder
	b.WriteString("# Written by atoll vm.\n[Unit]\n")
	if s.overlay() {
		fmt.Fprintf(&b, "Requires=%[1]s\nAfter=%[1]s\n", mountUnit(workspace))
	} else {
		fmt.Fprintf(&b, "RequiresMountsFor=%s\n", workspace)
	}
	fmt.Fprintf(&b, "\n[Service]\nWorkingDirectory=%s\nReadWritePaths=%[1]s\nEnvironment=ATOLL_CONFIG=%s\nExecStart=\nExecStart=%s gateway --grace 60s --listen 127.0.0.1:%d\n", workspace, ConfigFile, ProgramFile, s.Profile.Port)
	return []byte(b.String())
}

// config is the configuration of the gateway inside: agents work on the project through
// an overlay that is a copy, since virtiofs shows other owners than files have. The project
// is read-only, so the gate applies nothing by itself: with mode auto this machine does.
func (s *Setup) config() []byte {
	access := "overlay"
	if s.Profile.Mode == vmkeys.ModeDirect {
		access = "rw"
	}
	return fmt.Appendf(nil, `// Written by atoll vm.
{
  agents: {
    defaults: {
      workspace: %q,
      sandbox: { mode: "all", workspaceAccess: %q, overlay: { kind: "copy", empty: ["node_modules", ".venv", "target"] }, sync: { mode: "review" } },
    },
  },
}
`, profile.ProjectPoint, access)
}

// tailscale routes to the tailnet through this machine, which is part of it.
func (s *Setup) tailscale() Step {
	const unit = "atoll-tailnet.service"
	content := `# Written by atoll vm.
[Unit]
Description=Route to the tailnet through the host
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -ec 'ip route replace 100.64.0.0/10 via "$(ip -4 route show default | cut -d " " -f 3 | head -n 1)"'

[Install]
WantedBy=multi-user.target
`
	return Step{
		Name: "tailscale", Needs: []string{"firewall"}, Skip: unless(s.Profile.Roles.Tailscale, "roles.tailscale is off"),
		Actions: []Action{file(unitDir+unit, "0644", []byte(content))}, After: []Action{service(unit)},
	}
}

// plugins returns the three steps that others may bring, and any further ones.
func (s *Setup) plugins() (list []Step) {
	roles := s.Profile.Roles
	for name, on := range map[string]bool{"cadence": roles.Cadence, "buildlog": roles.Buildlog, "qortex": roles.Qortex} {
		if !on {
			list = append(list, Step{Name: name, Skip: "roles." + name + " is off"})
		}
	}
	list = append(list, s.Plugins...)
	sortPlugins(list)
	return list
}

// sandboxImage is the image of OpenClaw's own sandboxes.
const sandboxImage = "openclaw-sandbox:bookworm-slim"

// sandbox builds the image of OpenClaw's own sandboxes, and has OpenClaw use it.
func (s *Setup) sandbox() Step {
	step := Step{
		Name: "sandbox", Needs: []string{"docker", "gateway"}, Skip: unless(s.docker(), "docker is not installed"),
		Actions: []Action{{
			Check: "docker image inspect " + sandboxImage,
			Apply: ProgramFile + " images build sandbox --backend docker",
		}},
	}
	if s.Profile.OpenClaw {
		step.Edits = []*Edit{openClawConfig()}
	}
	return step
}

// syncGate has nothing to install: the gateway is the gate.
func (s *Setup) syncGate() Step {
	return Step{Name: "sync-gate", Needs: []string{"gateway"}, Skip: unless(s.overlay(), "mode is direct")}
}
