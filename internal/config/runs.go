package config

import (
	"fmt"
	"maps"
	"slices"
)

// Runs is runs.*.
type Runs struct {
	Concurrency int          `json:"concurrency"`
	OpenClaw    RunsOpenClaw `json:"openclaw"`
	Variants    []RunVariant `json:"variants,omitzero"` // by id
	External    []External   `json:"external,omitzero"` // by id
}

// RunsOpenClaw says which OpenClaw there is.
type RunsOpenClaw struct {
	Image   string `json:"image"`
	Install string `json:"install,omitempty"` // absolute
	Version string `json:"version,omitempty"`
	Memory  int64  `json:"memory,omitzero"`
	// Gateway is nil if it works in sandboxes of its own.
	Gateway *OpenClawGateway `json:"gateway,omitempty"`
}

// OpenClawGateway is runs.openclaw.gateway.
type OpenClawGateway struct {
	URL   string `json:"url"`
	Token LLMKey `json:"token"`
	Local bool   `json:"local"` // it is on this machine
}

// RunVariant is an agent of runs.variants. What is empty was not written.
type RunVariant struct {
	ID          string            `json:"id"`
	Preset      string            `json:"preset,omitempty"`
	Name        string            `json:"name,omitempty"`
	Description string            `json:"description,omitempty"`
	Image       string            `json:"image,omitempty"`
	Argv        []string          `json:"argv,omitzero"`
	Env         map[string]string `json:"env,omitzero"`
	Files       map[string]string `json:"files,omitzero"`
	Binds       []string          `json:"binds,omitzero"`
	Volumes     []string          `json:"volumes,omitzero"`
	Read        string            `json:"read,omitempty"`
	Stream      string            `json:"stream,omitempty"`
	Answer      string            `json:"answer,omitempty"`
	Failure     string            `json:"failure,omitempty"`
	Timeout     int               `json:"timeoutSeconds,omitzero"`
	Memory      int64             `json:"memory,omitzero"`
	User        string            `json:"user,omitempty"`
}

// What there is without configuration.
const (
	DefaultRunConcurrency = 4
	DefaultOpenClawImage  = "cogni-sandbox-openclaw:latest"
)

// Runs returns runs.* with defaults.
func (c *Config) Runs() (Runs, error) {
	out, written := Runs{Concurrency: DefaultRunConcurrency}, orEmpty(c.file.Runs)
	set(&out.Concurrency, written.Concurrency)
	c.limits.runs(&out)
	var err error
	if out.OpenClaw, err = c.runsOpenClaw(orEmpty(written.OpenClaw)); err != nil {
		return out, fmt.Errorf("runs.openclaw: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(written.Variants)) {
		f := written.Variants[id]
		v, err := f.variant(id)
		if err != nil {
			return out, fmt.Errorf("runs.variants.%s: %w", id, err)
		}
		out.Variants = append(out.Variants, v)
	}
	out.External, err = c.externals(written.External)
	return out, err
}

func (c *Config) runsOpenClaw(f *runsOpenClawFile) (o RunsOpenClaw, err error) {
	set(&o.Image, f.Image)
	set(&o.Version, f.Version)
	if f.Install != nil {
		if o.Install, err = c.hostPath(*f.Install); err != nil {
			return o, err
		}
	}
	if f.Memory != nil {
		if o.Memory, err = f.Memory.Bytes(); err != nil {
			return o, err
		}
	}
	if o.Image == "" && o.Install == "" {
		o.Image = DefaultOpenClawImage
	}
	if f.Mode != nil && *f.Mode == openclawGatewayMode {
		if o.Gateway, err = c.openclawGateway(f.Gateway); err != nil {
			return o, fmt.Errorf("gateway: %w", err)
		}
	}
	return o, nil
}

func (f *variantFile) variant(id string) (v RunVariant, err error) {
	v = RunVariant{
		ID: id, Argv: slices.Clone(f.Argv), Env: maps.Clone(f.Env), Files: maps.Clone(f.Files), Binds: slices.Clone(f.Binds), Volumes: slices.Clone(f.Volumes),
	}
	for _, text := range []struct{ to, from *string }{
		{&v.Preset, f.Preset}, {&v.Name, f.Name}, {&v.Description, f.Description}, {&v.Image, f.Image}, {&v.Read, f.Read}, {&v.Stream, f.Stream},
		{&v.Answer, f.Answer}, {&v.Failure, f.Failure}, {&v.User, f.User},
	} {
		set(text.to, text.from)
	}
	v.Image = imageNamed(v.Image)
	set(&v.Timeout, f.Timeout)
	if f.Memory != nil {
		v.Memory, err = f.Memory.Bytes()
	}
	return v, err
}
