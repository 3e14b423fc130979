package dockercli

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
)

const (
	// BrowserNetwork is the network that OpenClaw wants for its browsers. A container on it
	// has no network: its main command has the egress of sandbox.browser.
	BrowserNetwork = "openclaw-sandbox-browser"
	// maxPorts is how many ports a container may publish.
	maxPorts = 8
)

// Port is a port of a container that programs of this machine reach on 127.0.0.1.
type Port struct {
	Inside int `json:"inside"`
	Asked  int `json:"asked"` // on the host; 0: any
	Host   int `json:"host"`  // of its present life
}

// Published is what the main command of a container with published ports is started with.
type Published struct {
	Grant string   `json:"grant"` // "": it has no egress
	Env   []string `json:"env"`
}

// refusePort refuses a published port by name.
func refusePort(text, why string) error {
	return &refusal{"--publish " + text, why, "publish on 127.0.0.1: -p 127.0.0.1::PORT, or -p 127.0.0.1:HOSTPORT:PORT"}
}

// readPort reads 127.0.0.1:[HOST]:INSIDE[/tcp].
func readPort(text string) (Port, error) {
	spec, protocol, _ := strings.Cut(text, "/")
	parts := strings.Split(spec, ":")
	if protocol != "" && protocol != "tcp" {
		return Port{}, refusePort(text, "only TCP is passed on")
	}
	if len(parts) != 3 {
		return Port{}, refusePort(text, "it would be open on every address of this machine")
	}
	if address, err := netip.ParseAddr(parts[0]); err != nil || address != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
		return Port{}, refusePort(text, "ports are published on 127.0.0.1 alone")
	}
	inside, err := strconv.ParseUint(parts[2], 10, 16)
	if err != nil || inside == 0 {
		return Port{}, fmt.Errorf("invalid containerPort: %s", parts[2])
	}
	asked, err := strconv.ParseUint("0"+parts[1], 10, 16)
	if err != nil || asked > 0 && asked < 1024 {
		return Port{}, refusePort(text, "the port of this machine must be one from 1024 to 65535")
	}
	return Port{Inside: int(inside), Asked: int(asked)}, nil
}

// readPorts reads the ports to publish.
func readPorts(texts []string) (ports []Port, err error) {
	for _, text := range texts {
		p, err := readPort(text)
		if err != nil {
			return nil, err
		}
		ports = append(ports, p)
	}
	if len(ports) > maxPorts {
		return nil, &refusal{"--publish", fmt.Sprintf("a container publishes at most %d ports", maxPorts), "leave some out"}
	}
	return ports, nil
}

// publish opens the ports of a container and gives its main command its egress.
func (c *cli) publish(ctx context.Context, x *Container, command *machine.Command) error {
	if len(x.Ports) == 0 && x.Network != BrowserNetwork {
		return nil
	}
	published, err := c.containers.Publish(ctx, x)
	if err != nil {
		return err
	}
	command.Grant, command.Env = published.Grant, mergeEnv(command.Env, published.Env)
	return c.records.save(x)
}

// portVerb prints where the ports of a container are reached.
func (c *cli) portVerb() *verb {
	return &verb{usage: " CONTAINER [PRIVATE_PORT[/PROTO]]", least: 1, most: 2,
		run: func(ctx context.Context, args []string) error {
			x, s, err := c.get(ctx, args[0])
			if err != nil {
				return err
			}
			if s != statusRunning && s != statusPaused {
				x.Ports = nil
			}
			if len(args) == 1 {
				for _, p := range x.Ports {
					fmt.Fprintf(c.Out, "%d/tcp -> 127.0.0.1:%d\n", p.Inside, p.Host)
				}
				return nil
			}
			for _, p := range x.Ports {
				if args[1] == strconv.Itoa(p.Inside) || args[1] == fmt.Sprintf("%d/tcp", p.Inside) {
					fmt.Fprintf(c.Out, "127.0.0.1:%d\n", p.Host)
					return nil
				}
			}
			return localError(fmt.Sprintf("Error: No public port '%s' published for %s", args[1], x.Name))
		}}
}

// portBinding is where a port is reached, in docker's words.
type portBinding struct {
	HostIP   string `json:"HostIp"`
	HostPort string
}

// portBindings returns the ports of a container, as they were asked for or as they are.
func portBindings(c *Container, number func(Port) int) map[string][]portBinding {
	all := map[string][]portBinding{}
	for _, p := range c.Ports {
		text := ""
		if n := number(p); n != 0 {
			text = strconv.Itoa(n)
		}
		all[fmt.Sprintf("%d/tcp", p.Inside)] = []portBinding{{"127.0.0.1", text}}
	}
	return all
}

// openPorts returns where the ports of a running container are reached.
func openPorts(c *Container, s status) map[string][]portBinding {
	if s != statusRunning && s != statusPaused {
		return map[string][]portBinding{}
	}
	return portBindings(c, func(p Port) int { return p.Host })
}

// portText is the ports of a running container, as ps shows them.
func portText(c *Container, s status) string {
	var all []string
	for _, p := range c.Ports {
		if s == statusRunning || s == statusPaused {
			all = append(all, fmt.Sprintf("127.0.0.1:%d->%d/tcp", p.Host, p.Inside))
		}
	}
	return strings.Join(all, ", ")
}
