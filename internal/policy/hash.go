package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/atoll-run/atoll/internal/config"
)

// Dirs are the two host directories that a sandbox is made for.
type Dirs struct {
	Workspace string // mounted as the workdir
	Agent     string // the agent workspace
}

// ConfigHash identifies everything a sandbox is made from. A sandbox whose
// stored hash differs from this was made from another configuration. The user
// must have been derived before: it is part of the hash.
func ConfigHash(s config.Sandbox, dirs Dirs) string {
	return hashOf(configHashInput(s, dirs))
}

// Settings are what ConfigHash is made of, each as text by its key below sandbox.
// Values of variables, which may be secret, are digests.
func Settings(s config.Sandbox, dirs Dirs) map[string]string {
	settings := map[string]string{}
	in := configHashInput(s, dirs)
	docker, _ := in["docker"].(map[string]any)
	delete(in, "docker")
	for key, value := range in {
		settings[key] = CanonicalJSON(value)
	}
	for key, value := range docker {
		if key != "env" {
			settings["docker."+key] = CanonicalJSON(value)
		}
	}
	for name, value := range s.Docker.Env {
		settings["docker.env."+name] = "a value with digest " + hashOf(value)[:8]
	}
	return settings
}

// MountsHash identifies what is mounted, apart from everything else.
func MountsHash(mounts []Mount) string {
	list := make([]any, len(mounts))
	for i, m := range mounts {
		mount := map[string]any{
			"source": m.Source, "target": m.Target, "readOnly": m.ReadOnly,
			"kind": string(m.Kind), "relabel": m.Relabel,
		}
		if m.Overlay {
			mount["overlay"] = true
		}
		list[i] = mount
	}
	return hashOf(list)
}

func hashOf(value any) string {
	sum := sha256.Sum256([]byte(CanonicalJSON(value)))
	return hex.EncodeToString(sum[:])
}

// configHashInput has the four keys of OpenClaw's hash. What only Atoll knows is
// added when it is set, so that a plain configuration hashes as it always did.
func configHashInput(s config.Sandbox, dirs Dirs) map[string]any {
	in := object{
		"docker":            map[string]any(dockerHashInput(s.Docker)),
		"workspaceAccess":   string(s.WorkspaceAccess),
		"workspaceDir":      dirs.Workspace,
		"agentWorkspaceDir": dirs.Agent,
	}
	if s.WorkspaceAccess == config.AccessOverlay {
		in.setText("overlay.kind", string(s.Overlay.Kind))
		in.setList("overlay.more", treeTexts(s.Overlay.More))
	}
	in.setList("networkAllow", s.NetworkAllow)
	in.setList("networkExecAllow", s.NetworkExecAllow)
	in.setList("dangerouslyAllowSecretEnv", s.AllowSecretEnv)
	if s.Backend != "auto" {
		in.setText("backend", s.Backend)
	}
	return in
}

func treeTexts(trees []config.OverlayTree) (texts []string) {
	for _, tree := range trees {
		texts = append(texts, tree.Source+":"+tree.Target)
	}
	return texts
}

func dockerHashInput(d config.Docker) object {
	in := object{
		"image":           d.Image,
		"containerPrefix": d.ContainerPrefix,
		"workdir":         d.Workdir,
		"readOnlyRoot":    d.ReadOnlyRoot,
		"tmpfs":           d.Tmpfs,
		"network":         d.Network,
		"capDrop":         d.CapDrop,
	}
	in.setText("user", d.User)
	in.setText("setupCommand", d.SetupCommand)
	in.setText("gpus", d.GPUs)
	in.setText("seccompProfile", d.SeccompProfile)
	in.setText("apparmorProfile", d.AppArmorProfile)
	in.setSize("memory", d.Memory)
	in.setSize("memorySwap", d.MemorySwap)
	in.setList("binds", d.Binds)
	in.setSize("deviceReadBps", d.DeviceReadBps)
	in.setSize("deviceWriteBps", d.DeviceWriteBps)
	in.setCount("blkioWeight", d.BlkioWeight)
	in.setCount("deviceReadIOps", d.DeviceReadIOps)
	in.setCount("deviceWriteIOps", d.DeviceWriteIOps)
	in.setCount("pidsLimit", d.PidsLimit)
	if d.CPUs != 0 {
		in["cpus"] = d.CPUs
	}
	if d.DNS != nil {
		in["dns"] = d.DNS
	}
	if d.ExtraHosts != nil {
		in["extraHosts"] = d.ExtraHosts
	}
	if d.Env != nil {
		in["env"] = mapValues(d.Env, func(v string) any { return v })
	}
	if d.StorageOpt != nil {
		in["storageOpt"] = mapValues(d.StorageOpt, func(s config.Size) any { return writtenNumber(s.Text, s.Number) })
	}
	if d.WorkspaceLimit != nil {
		in["workspaceLimit"] = mapValues(d.WorkspaceLimit, func(s config.Size) any { return writtenNumber(s.Text, s.Number) })
	}
	if d.Ulimits != nil {
		in["ulimits"] = mapValues(d.Ulimits, ulimitHashInput)
	}
	in.setFlag("dangerouslyAllowReservedContainerTargets", d.AllowReservedTargets)
	in.setFlag("dangerouslyAllowExternalBindSources", d.AllowExternalSources)
	in.setFlag("dangerouslyAllowContainerNamespaceJoin", d.AllowNamespaceJoin)
	return in
}

func ulimitHashInput(u config.Ulimit) any {
	if u.Soft == nil && u.Hard == nil {
		return writtenNumber(u.Text, u.Number)
	}
	in := map[string]any{}
	if u.Soft != nil {
		in["soft"] = *u.Soft
	}
	if u.Hard != nil {
		in["hard"] = *u.Hard
	}
	return in
}

// writtenNumber is a value that the file may write as a string or as a number.
func writtenNumber(text string, number bool) any {
	if number {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	}
	return text
}

func mapValues[V any](values map[string]V, form func(V) any) map[string]any {
	formed := make(map[string]any, len(values))
	for key, value := range values {
		formed[key] = form(value)
	}
	return formed
}

// object is an input of the hash; its methods leave out what is not set.
type object map[string]any

func (o object) setCount(key string, value int64) {
	if value != 0 {
		o[key] = value
	}
}

func (o object) setText(key, value string) {
	if value != "" {
		o[key] = value
	}
}

func (o object) setList(key string, value []string) {
	if len(value) > 0 {
		o[key] = value
	}
}

func (o object) setFlag(key string, value bool) {
	if value {
		o[key] = true
	}
}

func (o object) setSize(key string, value config.Size) {
	if value.Text != "" {
		o[key] = writtenNumber(value.Text, value.Number)
	}
}
