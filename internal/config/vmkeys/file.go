package vmkeys

import "github.com/atoll-run/atoll/internal/config/amount"

// MachinesFile is vm as a file has it.
type MachinesFile struct {
	Profile  *string                `json:"profile" check:"word" doc:"Name of the profile that is used if none is named."`
	Defaults *ProfileFile           `json:"defaults" doc:"What all profiles have that do not say otherwise."`
	Profiles map[string]ProfileFile `json:"profiles" keys:"word" doc:"Virtual machines, by name."`
}

// ProfileFile is one profile as a file has it.
type ProfileFile struct {
	Mounts   *MountsFile  `json:"mounts" doc:"Directories of this machine that the virtual machine sees."`
	Mode     *Mode        `json:"mode" enum:"overlay|auto|direct" doc:"How the project is worked on: on an overlay whose changes a person approves (overlay) or that are applied when they pass (auto), or in the directory itself (direct)."`
	CPUs     *int         `json:"cpus" min:"1" max:"256" doc:"Processors; VM_CPUS wins."`
	Memory   *amount.Size `json:"memory" check:"size" doc:"Memory; VM_MEMORY wins."`
	Disk     *amount.Size `json:"disk" check:"size" doc:"Size of the disk; VM_DISK wins."`
	Rosetta  *bool        `json:"rosetta" doc:"Run programs for Intel processors on Apple's."`
	Port     *int         `json:"port" min:"1024" max:"65535" doc:"Port of the gateway, inside and on this machine's loopback interface."`
	Docker   *Docker      `json:"docker" enum:"auto" doc:"Install Docker: always (true), never (false), or if the configuration needs it (auto)."`
	Secrets  *string      `json:"secrets" check:"hostPath" doc:"File of NAME=value lines that the gateway gets; it is copied once, never mounted."`
	OpenClaw *bool        `json:"openclaw" doc:"Install Node.js and OpenClaw as well."`
	Program  *string      `json:"program" check:"hostPath" doc:"The program atoll for Linux that is installed inside."`
	Roles    *RolesFile   `json:"roles" doc:"Steps of the set-up that can be left out."`
}

// MountsFile is mounts of a profile as a file has it.
type MountsFile struct {
	Project      *string `json:"project" check:"hostPath" doc:"The project, /mnt/openclaw inside; writable only with mode direct."`
	Provision    *string `json:"provision" check:"hostPath" doc:"Directory of plug-ins, /mnt/provision inside; never writable."`
	Vault        *string `json:"vault" check:"hostPath" doc:"A vault of notes, /mnt/obsidian inside; writable only with mode direct."`
	Config       *string `json:"config" check:"hostPath" doc:"OpenClaw's state directory, /mnt/openclaw-config inside; writable only with mode direct."`
	AgentData    *string `json:"agentData" check:"hostPath" doc:"Data of agents, /mnt/openclaw-agents inside; always writable."`
	BuildlogData *string `json:"buildlogData" check:"hostPath" doc:"Data of buildlog, /mnt/buildlog-data inside; always writable."`
	Skills       *string `json:"skills" check:"hostPath" doc:"Skills of one's own, /mnt/skills-custom inside; never writable."`
}

// RolesFile is roles of a profile as a file has it.
type RolesFile struct {
	GhCLI     *bool `json:"ghCli" doc:"Install GitHub's command line."`
	Tailscale *bool `json:"tailscale" doc:"Install Tailscale and let its traffic out."`
	Cadence   *bool `json:"cadence" doc:"Run the plug-in cadence."`
	Buildlog  *bool `json:"buildlog" doc:"Run the plug-in buildlog."`
	Qortex    *bool `json:"qortex" doc:"Run the plug-in qortex."`
}
