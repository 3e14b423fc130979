package vmkeys

// Profile is a virtual machine as it is wanted.
type Profile struct {
	Name     string `json:"name"`
	Mounts   Mounts `json:"mounts"`
	Mode     Mode   `json:"mode"`
	CPUs     int    `json:"cpus"`
	Memory   int64  `json:"memory"` // bytes
	Disk     int64  `json:"disk"`   // bytes
	Rosetta  bool   `json:"rosetta"`
	Port     int    `json:"port"`
	Docker   Docker `json:"docker"`
	Secrets  string `json:"secrets,omitempty"`
	OpenClaw bool   `json:"openclaw"`
	Program  string `json:"program,omitempty"`
	Roles    Roles  `json:"roles"`
}

// Mounts are the directories that a virtual machine sees, as they were written.
type Mounts struct {
	Project      string `json:"project,omitempty"`
	Provision    string `json:"provision,omitempty"`
	Vault        string `json:"vault,omitempty"`
	Config       string `json:"config,omitempty"`
	AgentData    string `json:"agentData,omitempty"`
	BuildlogData string `json:"buildlogData,omitempty"`
	Skills       string `json:"skills,omitempty"`
}

// Roles are the steps that can be left out.
type Roles struct {
	GhCLI     bool `json:"ghCli"`
	Tailscale bool `json:"tailscale"`
	Cadence   bool `json:"cadence"`
	Buildlog  bool `json:"buildlog"`
	Qortex    bool `json:"qortex"`
}

// DefaultName is the name of the profile that is used if none is named.
const DefaultName = "default"

// Default returns a profile that nothing is written of.
func Default() Profile {
	return Profile{
		Name: DefaultName, Mode: ModeOverlay, CPUs: 4, Memory: 8 << 30, Disk: 50 << 30,
		Rosetta: true, Port: 18789, Docker: DockerAuto, Roles: Roles{GhCLI: true},
	}
}
