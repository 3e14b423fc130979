package dockercli

import (
	"path/filepath"
	"strconv"
	"strings"
)

// storage reads the flags that mount something into the container.
func (o *createOptions) storage(c *Container) error {
	for _, text := range o.tmpfs {
		target, options, _ := strings.Cut(text, ":")
		c.Tmpfs[target] = options
	}
	for _, text := range o.volumes {
		if err := c.addBind(text); err != nil {
			return err
		}
	}
	for _, text := range o.mounts {
		if err := c.addMount(text); err != nil {
			return err
		}
	}
	return nil
}

// addBind reads "source:target[:options]".
func (c *Container) addBind(text string) error {
	parts := strings.Split(text, ":")
	if strings.HasPrefix(parts[0], ".") { // from here on, as docker's own client has it
		whole, err := filepath.Abs(parts[0])
		if err != nil {
			return localError(err.Error())
		}
		parts[0] = whole
		text = strings.Join(parts, ":")
	}
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return &refusal{"--volume " + text, whyNoStore, hints()[whyNoStore]}
	}
	if !strings.HasPrefix(parts[0], "/") {
		return &refusal{"--volume " + text, whyNoStore, hints()[whyNoStore]}
	}
	m := Mount{Source: parts[0], Target: parts[1]}
	if len(parts) == 3 {
		m.Mode = parts[2]
	}
	for option := range strings.SplitSeq(m.Mode, ",") {
		switch option {
		case "ro":
			m.ReadOnly = true
		case "", "rw", "z", "Z", "rprivate", "private": // private is what mounts always are
		default:
			return &refusal{"--volume " + text, "option " + strconv.Quote(option) + " would couple the sandbox's mounts with the host's, or is not known", "ro, rw, z and Z are"}
		}
	}
	c.Binds, c.Mounts = append(c.Binds, text), append(c.Mounts, m)
	return nil
}

// addMount reads "type=bind,source=…,target=…,readonly".
func (c *Container) addMount(text string) error {
	kind, m, options := "volume", Mount{}, []string(nil)
	for field := range strings.SplitSeq(text, ",") {
		name, value, hasValue := strings.Cut(field, "=")
		switch strings.ToLower(name) {
		case "type":
			kind = value
		case "source", "src":
			m.Source = value
		case "target", "destination", "dst":
			m.Target = value
		case "readonly", "ro":
			m.ReadOnly = !hasValue || value == "true" || value == "1"
		case "tmpfs-size":
			options = append(options, "size="+value)
		case "tmpfs-mode":
			options = append(options, "mode="+value)
		default:
			return &refusal{"--mount " + text, "option " + strconv.Quote(name) + " is not kept here", "type, source, target, readonly, tmpfs-size and tmpfs-mode are"}
		}
	}
	switch {
	case kind == "tmpfs" && m.Target != "":
		c.Tmpfs[m.Target] = strings.Join(options, ",")
		return nil
	case kind == "volume":
		return &refusal{"--mount " + text, whyNoStore, hints()[whyNoStore]}
	case kind != "bind" || len(options) > 0:
		return &refusal{"--mount " + text, "only type=bind, with a host directory, and type=tmpfs can be had", hints()[whyNoStore]}
	}
	bind := m.Source + ":" + m.Target
	if m.ReadOnly {
		bind += ":ro"
	}
	return c.addBind(bind)
}
