package e2b

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/e2b/envd"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// The words of E2B for what is everything, and for the template that is always there.
const (
	allTraffic   = "0.0.0.0/0"
	baseTemplate = "base"
	// workdir is where programs for E2B expect their files.
	workdir = "/home/user"
)

// createRequest is a sandbox to make.
type createRequest struct {
	TemplateID      string            `json:"templateID"`
	Timeout         *int64            `json:"timeout"`
	Metadata        map[string]string `json:"metadata"`
	EnvVars         map[string]string `json:"envVars"`
	Secure          *bool             `json:"secure"`
	AllowInternet   *bool             `json:"allow_internet_access"`
	Network         *network          `json:"network"`
	AutoPause       bool              `json:"autoPause"`
	AutoPauseMemory *bool             `json:"autoPauseMemory"`
	AutoResume      *struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
	MCP          jsontext.Value   `json:"mcp"`
	IAM          jsontext.Value   `json:"iam"`
	VolumeMounts []jsontext.Value `json:"volumeMounts"`
}

// network is what a sandbox reaches, and who reaches it.
type network struct {
	AllowOut      []string       `json:"allowOut"`
	DenyOut       []string       `json:"denyOut"`
	AllowPublic   *bool          `json:"allowPublicTraffic"`
	Rules         jsontext.Value `json:"rules"`
	EgressProxy   jsontext.Value `json:"egressProxy"`
	MaskHost      jsontext.Value `json:"maskRequestHost"`
	HTTPSPorts    jsontext.Value `json:"httpsPorts"`
	AllowInternet *bool          `json:"allow_internet_access"`
}

// isGiven reports whether a member says something.
func isGiven(v jsontext.Value) bool {
	return len(v) > 0 && !slices.Contains([]string{"null", "{}", "[]", `""`}, string(v))
}

// check refuses what cannot be kept, and names it.
func (q *createRequest) check() error {
	switch {
	case isGiven(q.MCP):
		return badField("mcp", "there is no MCP gateway in a sandbox: see atoll mcp")
	case isGiven(q.IAM):
		return badField("iam", "sandboxes have no identity")
	case len(q.VolumeMounts) > 0:
		return badField("volumeMounts", "there are no volumes")
	case q.AutoResume != nil && q.AutoResume.Enabled:
		return badField("autoResume", "requests do not resume a sandbox: connect does")
	case q.AutoPause && (q.AutoPauseMemory == nil || *q.AutoPauseMemory):
		return badField("autoPauseMemory", "memory is not kept at the deadline: say false to keep the files alone")
	}
	return q.Network.check()
}

func (n *network) check() error {
	if n == nil {
		return nil
	}
	for name, v := range map[string]jsontext.Value{"rules": n.Rules, "egressProxy": n.EgressProxy, "maskRequestHost": n.MaskHost, "httpsPorts": n.HTTPSPorts} {
		if isGiven(v) {
			return badField("network."+name, "is not supported")
		}
	}
	closed := slices.Contains(n.DenyOut, allTraffic)
	switch {
	case n.AllowPublic != nil && *n.AllowPublic:
		return badField("network.allowPublicTraffic", "ports always need the traffic access token")
	case len(n.DenyOut) > 0 && (!closed || len(n.DenyOut) > 1):
		return badField("network.denyOut", "only %s can be denied: names are allowed, addresses are not judged", allTraffic)
	case len(n.AllowOut) > 0 && !closed:
		return badField("network.denyOut", "must be %s where allowOut is given: what is not allowed is denied", allTraffic)
	}
	return nil
}

// egress returns what a request says about egress; nil leaves it to the operator.
func (q *createRequest) egress() *api.SandboxEgress {
	n := q.Network
	switch {
	case n != nil && slices.Contains(n.DenyOut, allTraffic):
		return &api.SandboxEgress{Allow: append([]string{}, n.AllowOut...)}
	case q.AllowInternet != nil && !*q.AllowInternet, n != nil && n.AllowInternet != nil && !*n.AllowInternet:
		return &api.SandboxEgress{Allow: []string{}}
	}
	return nil
}

// create makes a sandbox.
func (c *call) create() error {
	var q createRequest
	if err := c.read(&q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	body := &api.CreateSandbox{Env: q.EnvVars, Metadata: q.Metadata, Egress: q.egress()}
	if q.Timeout != nil {
		if body.TimeoutSeconds = *q.Timeout; body.TimeoutSeconds < 1 {
			return badField("timeout", "must be at least 1")
		}
	}
	if q.AutoPause {
		body.OnDeadline = sandboxes.OnDeadlineStop
	}
	if err := c.useTemplate(body, q.TemplateID); err != nil {
		return err
	}
	r, err := c.Made.Create(c.ctx(), &sandboxes.Request{
		CreateSandbox: body, Account: c.caller.Account, MostSandboxes: c.Access.Limiter.Quota(c.caller).Sandboxes, Bound: true, E2B: true,
	})
	if errors.Is(err, sandbox.ErrNoImage) {
		return noImage(body.Image, q.TemplateID)
	}
	if err != nil {
		return err
	}
	if err := c.Made.StartProgram(c.ctx(), r); err != nil {
		return errors.Join(err, c.Made.Remove(c.ctx(), r))
	}
	return c.answer(http.StatusCreated, c.made(r))
}

// noImage says how the image of a template comes to be there.
func noImage(image, template string) error {
	if image == interpreter {
		return &fault{http.StatusNotFound, fmt.Sprintf("the image of template %q is not built: the operator runs `atoll images build %s`", template, interpreter)}
	}
	return &fault{http.StatusNotFound, fmt.Sprintf("there is no image of template %q: the operator names one in e2b.templates", template)}
}

// madeSandbox is how a client gets into a sandbox.
type madeSandbox struct {
	SandboxID    string `json:"sandboxID"`
	TemplateID   string `json:"templateID"`
	ClientID     string `json:"clientID"`
	Alias        string `json:"alias,omitempty"`
	EnvdVersion  string `json:"envdVersion"`
	EnvdToken    string `json:"envdAccessToken"`
	TrafficToken string `json:"trafficAccessToken"`
	Domain       string `json:"domain"`
}

func (c *call) made(r *sandboxes.Record) *madeSandbox {
	template := c.templateOf(r)
	return &madeSandbox{
		SandboxID: r.ID, TemplateID: template, Alias: template, ClientID: "atoll", EnvdVersion: envd.Version,
		EnvdToken: r.Details.AccessToken, TrafficToken: r.Details.PortToken, Domain: domainOf(c.r.Host),
	}
}

// domainOf returns what host names of ports end in, for a client that reached the gateway by
// a host: an address has no names below it, and those of localhost are this machine's.
func domainOf(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, ""
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		name = "localhost"
	}
	if port == "" {
		return name
	}
	return name + ":" + port
}
