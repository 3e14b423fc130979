package openclaw_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/run/openclaw"
)

// composeDir is where the compose files are.
const composeDir = "../../../deploy/compose"

// composition is a compose file, as far as these files may go: a key that is not
// here is an error.
type composition struct {
	Services map[string]service
	Networks map[string]struct {
		Name     string
		Internal bool
		IPAM     struct{ Config []map[string]string }
	}
	Volumes map[string]struct {
		Name    string
		Options map[string]string `yaml:"driver_opts"`
	}
}

type service struct {
	Image       string
	Build       map[string]string
	Entrypoint  []string
	Command     []string
	Init        bool
	User        string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Pids        int      `yaml:"pids_limit"`
	Memory      string   `yaml:"mem_limit"`
	CPUs        float64
	Networks    memberships
	ExtraHosts  []string `yaml:"extra_hosts"`
	NetworkMode string   `yaml:"network_mode"`
	EnvFile     []string `yaml:"env_file"`
	Environment map[string]string
	Volumes     []string
	Tmpfs       []string
	DependsOn   []string `yaml:"depends_on"`
	Restart     string
	Grace       string `yaml:"stop_grace_period"`
	Logging     struct {
		Driver  string
		Options map[string]string
	}
}

// memberships are the networks of a service with its addresses there, which are written
// as a list where it has none.
type memberships map[string]string

// UnmarshalYAML implements yaml.Unmarshaler.
func (m *memberships) UnmarshalYAML(node *yaml.Node) error {
	*m = memberships{}
	if node.Kind == yaml.SequenceNode {
		var names []string
		err := node.Decode(&names)
		for _, name := range names {
			(*m)[name] = ""
		}
		return err
	}
	var all map[string]struct {
		Address string `yaml:"ipv4_address"`
	}
	err := node.Decode(&all)
	for name, at := range all {
		(*m)[name] = at.Address
	}
	return err
}

const (
	githubService  = "github-egress"
	gatewayService = "openclaw-gateway"
	proxyService   = "llm-proxy-openclaw"
)

func composeFile(t *testing.T, name string) (c composition, text string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(composeDir, name))
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c, string(data)
}

func composeFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(composeDir, "*.yaml"))
	if err != nil || len(paths) != 5 {
		t.Fatalf("%q, %v", paths, err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}

// Dev and prod differ in how services are kept, never in what they are.
//
// Seen to fail with image: cogni-sandbox-openclaw:dev in compose.dev.yaml.
func TestInvariant_COMPOSE_IMAGE_PARITY(t *testing.T) {
	base, _ := composeFile(t, "compose.yaml")
	if image := base.Services[gatewayService].Image; image != config.DefaultOpenClawImage {
		t.Errorf("the gateway is %q; runs use %q", image, config.DefaultOpenClawImage)
	}
	for _, name := range []string{"compose.dev.yaml", "compose.prod.yaml"} {
		overlay, text := composeFile(t, name)
		for id, s := range overlay.Services {
			if _, there := base.Services[id]; !there || s.Image != "" && s.Image != base.Services[id].Image {
				t.Errorf("%s: service %s is another, or has an image of its own: %q", name, id, s.Image)
			}
		}
		if strings.Contains(text, "image:") || strings.Contains(text, "platform:") {
			t.Errorf("%s names an image or a platform", name)
		}
	}
}

// The gateway reaches the proxy and the internet, and only a client with its token,
// in the same network, reaches the gateway; it is given only what it uses. Of the token
// of GitHub it has a placeholder: the value is with the service by which it reaches
// GitHub.
//
// Seen to fail with ports: ["18789:18789"] or GITHUB_TOKEN in the environment of
// the gateway in compose.yaml and compose.github.yaml, with git: "all" or PUT in
// atoll.json5, and with auth.mode "none" in openclaw.Config.
func TestInvariant_GATEWAY_NETWORK_ACCESS(t *testing.T) {
	base, _ := composeFile(t, "compose.yaml")
	g := base.Services[gatewayService]
	if !maps.Equal(g.Networks, memberships{"sandbox-internal": "", "cogni-edge": ""}) || g.NetworkMode != "" {
		t.Errorf("networks %q, mode %q", g.Networks, g.NetworkMode)
	}
	if !base.Networks["sandbox-internal"].Internal || base.Networks["cogni-edge"].Internal || len(base.Networks) != 2 {
		t.Errorf("%+v", base.Networks)
	}
	if p := base.Services[proxyService]; !maps.Equal(p.Networks, memberships{"sandbox-internal": ""}) {
		t.Errorf("the proxy is in %q", p.Networks)
	}
	for _, name := range composeFiles(t) {
		_, text := composeFile(t, name)
		for _, word := range []string{"ports:", "expose:", "privileged", "docker.sock", "network_mode: host", "0.0.0.0:18789"} {
			if strings.Contains(text, word) {
				t.Errorf("%s has %q", name, word)
			}
		}
		if strings.Contains(text, "GITHUB_TOKEN") && name != "compose.github.yaml" {
			t.Errorf("%s has the token of GitHub", name)
		}
	}
	checkGitHub(t)
	if auth := generatedGateway(t).Auth; auth.Mode != "token" || auth.Token != "${OPENCLAW_GATEWAY_TOKEN}" {
		t.Errorf("%+v", auth)
	}
}

// checkGitHub checks that the gateway reaches GitHub by a service that has the token, and
// that this lets it read and never push.
func checkGitHub(t *testing.T) {
	t.Helper()
	c, _ := composeFile(t, "compose.github.yaml")
	g, e := c.Services[gatewayService], c.Services[githubService]
	address := e.Networks["sandbox-internal"]
	if len(g.Environment) > 0 || len(g.Networks) > 0 || address == "" || !slices.Equal(g.ExtraHosts, []string{"github.com:" + address, "api.github.com:" + address}) {
		t.Errorf("the gateway: %+v", g)
	}
	if e.Environment["GITHUB_TOKEN"] == "" || !e.ReadOnly || !slices.Equal(e.CapDrop, []string{"ALL"}) || !slices.Contains(e.SecurityOpt, "no-new-privileges:true") || e.Pids == 0 {
		t.Errorf("the service: %+v", e)
	}
	rules := composeRules(t)
	for request, allowed := range map[[3]string]bool{
		{"github.com", "GET", "/org/project/info/refs?service=git-upload-pack"}: true, {"github.com", "POST", "/org/project/git-upload-pack"}: true,
		{"github.com", "GET", "/org/project/info/refs?service=git-receive-pack"}: false, {"github.com", "POST", "/org/project/git-receive-pack"}: false,
		{"api.github.com", "GET", "/repos/org/project/pulls"}: true, {"api.github.com", "PUT", "/repos/org/project/contents/x"}: false,
		{"api.github.com", "POST", "/repos/org/project/git/refs"}: false, {"api.github.com", "POST", "/graphql"}: false,
	} {
		if d := rules.Request(request[0], 443, request[1], request[2]); d.Allow != allowed {
			t.Errorf("%q: %+v", request, d)
		}
	}
	if d := rules.Connect("gist.github.com", 443); d.Allow {
		t.Errorf("%+v", d)
	}
}

// composeRules are the egress rules of the configuration beside the compose files.
func composeRules(t *testing.T) *rule.Policy {
	t.Helper()
	c, err := config.Load(filepath.Join(composeDir, "atoll.json5"), config.Environment{Home: "/", Cwd: "/", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := c.Resolve(c.DefaultAgent())
	if err != nil {
		t.Fatal(err)
	}
	rules, err := rule.Compile(&agent.Sandbox.Egress, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

type gatewayPart struct {
	Auth      struct{ Mode, Token string }
	ControlUI struct{ Enabled bool } `json:"controlUi"`
}

func generatedGateway(t *testing.T) gatewayPart {
	t.Helper()
	var file struct{ Gateway gatewayPart }
	if err := json.Unmarshal(generated(t, openclaw.Options{}), &file, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	return file.Gateway
}

func generated(t *testing.T, o openclaw.Options) []byte {
	t.Helper()
	models, err := openclaw.FromYAML([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	o.Mode, o.Model, o.Models = openclaw.Gateway, "small", models
	text, err := openclaw.Config(o)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The gateway has no pages: no Control UI, no canvas, no browser, no port of a
// bridge. That the real gateway then has no pages is seen where it runs.
//
// Seen to fail with Enabled: true in the controlUI of openclaw.Config.
func TestInvariant_NO_OPENCLAW_DASHBOARD(t *testing.T) {
	if generatedGateway(t).ControlUI.Enabled {
		t.Error("the Control UI is on")
	}
	for dialect, parts := range map[openclaw.Dialect][]string{openclaw.List: {"browser", "canvasHost"}, openclaw.Entries: {"browser"}} {
		var file struct{ Browser, CanvasHost struct{ Enabled *bool } }
		if err := json.Unmarshal(generated(t, openclaw.Options{Agents: dialect}), &file, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		off := map[string]*bool{"browser": file.Browser.Enabled, "canvasHost": file.CanvasHost.Enabled}
		for _, part := range parts {
			if on := off[part]; on == nil || *on {
				t.Errorf("%s: %s is not off", dialect, part)
			}
		}
	}
	base, text := composeFile(t, "compose.yaml")
	if strings.Contains(strings.ToLower(text), "bridge") || base.Services[gatewayService].Environment["OPENCLAW_SKIP_CANVAS_HOST"] != "1" {
		t.Error("the compose file lets a bridge or a canvas be")
	}
}

// What the gateway may write to is its own; its configuration is not.
func TestComposeWalls(t *testing.T) {
	base, text := composeFile(t, "compose.yaml")
	g := base.Services[gatewayService]
	want := []string{"./openclaw/openclaw.json:/etc/openclaw/openclaw.json:ro", "workspace:/workspace", "pnpm_store:/pnpm-store", "repo_data:/repo:ro"}
	if !slices.Equal(g.Volumes, want) || g.Environment["OPENCLAW_CONFIG_PATH"] != "/etc/openclaw/openclaw.json" {
		t.Errorf("%q", g.Volumes)
	}
	if base.Volumes["workspace"].Name != "cogni_workspace" {
		t.Errorf("the workspace's volume is %q", base.Volumes["workspace"].Name)
	}
	unit, err := os.ReadFile(filepath.Join(composeDir, "..", "systemd", "atoll-repo.service"))
	filled := strings.TrimSuffix(strings.TrimPrefix(base.Volumes["repo_data"].Options["device"], "${ATOLL_REPO_DIR:-"), "}")
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/usr/local/bin/atoll relay mirror "+filled+" --every ") {
		t.Errorf("nothing fills %q: %v", filled, err)
	}
	runs, _ := composeFile(t, "compose.runs.yaml")
	for id, s := range map[string]service{gatewayService: g, proxyService: base.Services[proxyService], "atoll": runs.Services["atoll"]} {
		if !s.ReadOnly || !strings.Contains(s.User, "1001:1001") || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Pids == 0 {
			t.Errorf("%s: %+v", id, s)
		}
	}
	for name := range maps.Keys(g.Environment) {
		if strings.Contains(name, "KEY") || strings.Contains(name, "TOKEN") {
			t.Errorf("the gateway is given %s", name)
		}
	}
	if strings.Count(text, " LITELLM_MASTER_KEY: ") != 1 || base.Services[proxyService].Environment["LITELLM_MASTER_KEY"] == "" {
		t.Error("the key of LiteLLM is not with the proxy alone")
	}
	if !strings.Contains(openclaw.DefaultProxy, "//"+proxyService+":8080") || !slices.Contains(base.Services[proxyService].Command, "0.0.0.0:8080") {
		t.Error("the proxy is not where the gateway's configuration says")
	}
}

// The configuration beside the compose files is one that Atoll takes.
func TestComposeConfig(t *testing.T) {
	c, err := config.Load(filepath.Join(composeDir, "atoll.json5"), config.Environment{Home: "/", Cwd: "/", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := c.Runs()
	if err != nil || runs.OpenClaw.Gateway == nil || !runs.OpenClaw.Gateway.Local {
		t.Errorf("%+v, %v", runs.OpenClaw, err)
	}
}
