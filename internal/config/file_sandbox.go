package config

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config/browserkeys"
)

type sandboxFile struct {
	Mode                   *Mode          `json:"mode" enum:"off|non-main|all" doc:"Which sessions are sandboxed."`
	Scope                  *Scope         `json:"scope" enum:"session|agent|shared" doc:"Who shares a sandbox."`
	PerSession             *bool          `json:"perSession" note:"perSession" doc:"Old form of scope: true is session, false is shared."`
	Backend                *string        `json:"backend" check:"backend" doc:"What makes the sandbox: auto, docker, podman, linux or kubernetes."`
	WorkspaceAccess        *Access        `json:"workspaceAccess" enum:"none|ro|overlay|rw|yolo|yolo-unsafe" doc:"How much of the agent workspace the sandbox sees: a private copy (none), the workspace read-only besides it (ro), the workspace with changes kept apart until they are approved (overlay), the workspace itself (rw). yolo is overlay with sync.mode auto, yolo-unsafe is rw."`
	WorkspaceRoot          *string        `json:"workspaceRoot" check:"hostPath" doc:"Directory of the sandboxes' own workspaces."`
	SessionToolsVisibility *string        `json:"sessionToolsVisibility" enum:"spawned|all" doc:"Which sessions the session tools of a sandboxed session show. Read from agents.defaults only."`
	NetworkAllow           []string       `json:"networkAllow" check:"line" doc:"Tools (names, group:names, patterns with *) that work in the networked half of the sandbox. If this list or networkExecAllow has entries, the sandbox has two halves: one without and one with a network."`
	NetworkExecAllow       []string       `json:"networkExecAllow" check:"line" doc:"Commands (words, * stands for the rest: gh *) that run in the networked half. Only one simple command of literal words ever matches."`
	AllowSecretEnv         []string       `json:"dangerouslyAllowSecretEnv" check:"envName" doc:"Names in docker.env that look like secrets and shall be passed all the same."`
	Overlay                *overlayFile   `json:"overlay" doc:"How workspaceAccess overlay keeps changes apart."`
	Sync                   *syncFile      `json:"sync" doc:"How changes of an overlay reach the workspace."`
	Egress                 *egressFile    `json:"egress" doc:"Which names outside the sandbox reaches."`
	Docker                 *dockerFile    `json:"docker" doc:"The container, whatever backend makes it."`
	Browser                *browserFile   `json:"browser" doc:"The browser sandbox."`
	Prune                  *pruneFile     `json:"prune" doc:"When an unused sandbox is removed."`
	SSH                    jsontext.Value `json:"ssh" note:"later" doc:"OpenClaw's ssh backend, which Atoll has not."`
}

type dockerFile struct {
	Image           *string           `json:"image" check:"image" doc:"Image of the sandbox."`
	ContainerPrefix *string           `json:"containerPrefix" check:"prefix" doc:"What container names begin with."`
	Workdir         *string           `json:"workdir" check:"workdir" doc:"Where the workspace is mounted."`
	ReadOnlyRoot    *bool             `json:"readOnlyRoot" doc:"The root file system is read-only."`
	Tmpfs           []string          `json:"tmpfs" check:"tmpfs" doc:"Directories in memory: PATH or PATH:OPTIONS."`
	Network         *string           `json:"network" check:"network" doc:"none, bridge or the name of a network."`
	User            *string           `json:"user" check:"user" doc:"User in the sandbox; the owner of the workspace directory if not given."`
	CapDrop         []string          `json:"capDrop" check:"word" doc:"Linux capabilities to drop."`
	Env             map[string]string `json:"env" keys:"envName" check:"envValue" doc:"Environment of every command."`
	SetupCommand    *Lines            `json:"setupCommand" check:"script" doc:"Shell command that runs once after the sandbox was made; a list is one line each."`
	PidsLimit       *int64            `json:"pidsLimit" min:"1" max:"4194304" doc:"Most processes and threads at once."`
	Memory          *Size             `json:"memory" check:"size" doc:"Most memory: bytes, or a number and b, k, m, g or t."`
	MemorySwap      *Size             `json:"memorySwap" check:"swap" doc:"Most memory and swap together; -1 is no limit on swap."`
	CPUs            *float64          `json:"cpus" above:"0" max:"4096" doc:"Processors that may be used; fractions are allowed."`
	BlkioWeight     *int64            `json:"blkioWeight" min:"10" max:"1000" doc:"Share of the disks beside other sandboxes; takes a scheduler that gives shares."`
	DeviceReadBps   *Size             `json:"deviceReadBps" check:"amount" doc:"Most bytes a second read from each disk that the sandbox's files are on."`
	DeviceWriteBps  *Size             `json:"deviceWriteBps" check:"amount" doc:"Most bytes a second written to each of them."`
	DeviceReadIOps  *int64            `json:"deviceReadIOps" min:"1" max:"1000000000" doc:"Most requests a second that read."`
	DeviceWriteIOps *int64            `json:"deviceWriteIOps" min:"1" max:"1000000000" doc:"Most requests a second that write."`
	StorageOpt      map[string]Size   `json:"storageOpt" keys:"storageName" check:"amount" doc:"What a root that may be changed can hold besides its image: size and inodes."`
	WorkspaceLimit  map[string]Size   `json:"workspaceLimit" keys:"roomName" check:"amount" doc:"What a workspace that may be changed can hold: size and files."`
	GPUs            *string           `json:"gpus" check:"line" doc:"GPUs that the sandbox sees, in docker's form: all, 2, device=0."`
	Ulimits         map[string]Ulimit `json:"ulimits" keys:"ulimitName" check:"ulimit" doc:"Resource limits: a number, soft:hard, or soft and hard."`
	SeccompProfile  *string           `json:"seccompProfile" check:"profile" doc:"Path of a seccomp profile in place of Atoll's own."`
	AppArmorProfile *string           `json:"apparmorProfile" check:"profile" doc:"Name of an AppArmor profile."`
	DNS             []string          `json:"dns" check:"address" doc:"Addresses of name servers."`
	ExtraHosts      []string          `json:"extraHosts" check:"extraHost" doc:"Entries for /etc/hosts: NAME:ADDRESS."`
	Binds           []string          `json:"binds" check:"bind" doc:"Host directories to mount: SOURCE:TARGET[:ro]."`

	AllowReservedTargets *bool `json:"dangerouslyAllowReservedContainerTargets" doc:"Binds may cover /workspace and /agent."`
	AllowExternalSources *bool `json:"dangerouslyAllowExternalBindSources" doc:"Bind sources may be outside the agent's directories."`
	AllowNamespaceJoin   *bool `json:"dangerouslyAllowContainerNamespaceJoin" doc:"The network may be that of another container."`
}

type browserFile struct {
	browserkeys.File
	Egress *egressFile `json:"egress" doc:"Which names the browser reaches, in place of sandbox.egress."`
}

type pruneFile struct {
	IdleHours  *int `json:"idleHours" min:"0" max:"1000000" doc:"Remove a sandbox that was not used for so long; 0 is never."`
	MaxAgeDays *int `json:"maxAgeDays" min:"0" max:"100000" doc:"Remove a sandbox that is so old; 0 is never."`
}
