package archtest

// A Rule is one thing that must hold for the whole tree.
type Rule struct {
	Name   string
	Reason string
	Check  func([]Package) []string // what is wrong, a line each
}

// Rules returns the rules of the house. Every one of them has a case in
// TestEveryRuleBites.
func Rules() []Rule {
	return []Rule{
		{"imports point down", "a package that knows its users cannot be understood alone", checkLayers},
		{"one home for a heavy dependency", "what is used in one place can be replaced in one place", checkHomes},
		{"test kits stay in tests", "what makes tests easy must not be in the product", checkTestKits},
		{"only sandbox/provide and app import runtimes", "everything else works with any runtime", onlyImporters([]string{"internal/runtime/docker", "internal/runtime/linux"}, "internal/sandbox/provide", "internal/app")},
		{"only atoll-kube links clusters", "the everyday program does not pay for the libraries of Kubernetes", onlyImporters([]string{"internal/runtime/kube"}, "cmd/atoll-kube")},
		{"no typed clients of clusters", "they are three times as large as what they replace", forbid([]string{"internal/runtime/kube"}, []string{
			"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/dynamic/dynamicinformer", "k8s.io/client-go/tools/leaderelection"})},
		{"no program is imported", "a program's main package is wiring, not a library", onlyImporters([]string{"cmd", "examples"})},
		{"the guest links little", "it is inside every sandbox, beside hostile code: no network stack, no secrets, nothing to attack", checkGuest},
		{"the host does not link the guest", "the two halves share the wire's language, and how a process is started", onlyImporters([]string{"internal/guest"}, "cmd/atoll-guest")},
		{"policy does no I/O", "a decision must be the same wherever and whenever it is made", checkPolicy},
		{"grants, not containers", "proxies decide by who is calling, never by what it runs in", forbid(
			[]string{"internal/model/proxy", "internal/egress"}, []string{"internal/sandbox", "internal/machine"}, "internal/egress/service")},
		{"sandboxes know no git", "the engine must serve work that is not in a repository", forbid(
			[]string{"internal/sandbox", "internal/runtime"}, []string{"internal/relay", "github.com/go-git", "github.com/google/go-github"})},
		{"api is plain", "a client of the gateway links the standard library only", checkAPI},
		{"names say something", "a package for anything is a package for nothing", checkNames},
		{"every package says what it is for", "the comment is where a reader starts", checkDocs},
		{"no init functions", "what happens at start must be seen in app", checkInits},
		{"app is wiring", "what works on an installation has an owner, which is found by its folder", checkWiring},
		{"packages stay small", "a large package holds more than one thing, and few read all of it", checkSizes},
		{"files stay short", "a long file holds more than one thing", checkLengths},
	}
}

// layers lists the packages of this tree from the bottom up. A package imports
// packages of lower layers, and those below its own directory. Packages need
// not exist yet.
func layers() [][]string {
	return [][]string{
		{"api", "deploy", "images", "internal/errhint", "internal/version", "internal/lazyregexp", "internal/tailbuf", "internal/logid", "internal/audit/traceparent", "internal/secret/tokencache", "internal/secret/secretstore", "internal/fakellm", "internal/membudget", "internal/hostpath/blockdev", "internal/h1", "internal/egress/hostname"},
		{"internal/config/json5", "internal/config/keyprovider", "internal/policy/shell", "internal/outbound", "internal/loopback", "internal/contexts", "internal/tool/diff", "internal/secret", "internal/metrics", "internal/filelock", "internal/wire", "internal/gateway/protocol", "internal/egress/preset"},
		{"internal/confined", "internal/tracing", "internal/runtime/seccomp", "internal/runtime/cgroups", "internal/runtime/guestbin", "internal/runtime/blueprint"},
		{"client", "internal/gateway/publicerr", "internal/hostpath", "internal/checkout", "internal/store", "internal/guest"},
		{"internal/config", "internal/contentpolicy", "internal/machine", "internal/runtime/rootfs", "internal/agent/preset"},
		{"internal/policy", "internal/egress/rule", "internal/egress/inject", "internal/terminal", "internal/audit", "internal/approval", "internal/model/usage", "internal/model/grant"},
		{"internal/machine/guestfs", "internal/egress/inspect", "internal/sshserver"},
		{"internal/sandbox/workspace", "internal/sandbox/directory", "internal/sandbox/overlay"},
		{"internal/sandbox/follow"},
		{"internal/sandbox", "internal/runtime/image"},
		{"internal/sandbox/verify"},
		{"internal/sandbox/plan", "internal/runtime"},
		{"internal/sandbox/provide"},
		{"internal/tool", "internal/model", "internal/egress", "internal/relay", "internal/gate", "internal/dockercli"},
		{"internal/browser", "internal/agent", "internal/gate/take"},
		{"internal/run", "internal/gateway/session"},
		{"internal/model/service"},
		{"internal/relay/deliver"},
		{"internal/egress/service"},
		{"internal/browser/service"},
		{"internal/gate/overlays"},
		{"internal/agent/host"},
		{"internal/run/execute"},
		{"internal/gateway", "internal/mcp", "internal/ui", "internal/vm"},
		{"internal/doctor", "internal/dockercli/containers"},
		{"internal/gateway/serve"},
		{"internal/app"},

		{"internal/cli"},
		{"cmd", "examples"},
	}
}

// homes says which packages may import a heavy dependency, each named by the
// beginning of its path. Dependencies need not be in use yet.
func homes() map[string][]string {
	docker := []string{"internal/runtime/docker"}
	linux := []string{"internal/runtime/linux"}
	kube := []string{"internal/runtime/kube"}
	return map[string][]string{
		"github.com/moby/moby":                   docker,
		"github.com/containerd/errdefs":          docker,
		"github.com/moby/profiles":               {"internal/runtime/seccomp"},
		"github.com/opencontainers/runtime-spec": {"internal/runtime/seccomp", "internal/runtime/linux"},
		"github.com/landlock-lsm/go-landlock":    linux,
		"github.com/vishvananda/netlink":         linux,
		"github.com/google/nftables":             linux,
		"k8s.io":                                 kube,
		"sigs.k8s.io":                            kube,
		"github.com/google/go-containerregistry": {"internal/runtime/rootfs"},
		"github.com/klauspost/compress":          {"internal/runtime/rootfs"},
		"modernc.org/sqlite":                     {"internal/store"},
		"github.com/pressly/goose":               {"internal/store"},
		"github.com/hashicorp/yamux":             {"internal/wire"},
		"github.com/spf13":                       {"internal/cli", "cmd"},
		"github.com/google/jsonschema-go":        {"internal/config", "internal/tool"},
		"github.com/coder/websocket":             {"internal/browser", "internal/gateway/browsers", "internal/gateway/live", "internal/gateway/protocol", "internal/gateway/terminal"},
		"github.com/prometheus":                  {"internal/gateway"},
		"go.opentelemetry.io":                    {"internal/tracing"},
		"google.golang.org/protobuf":             {"internal/tracing"},
		"github.com/modelcontextprotocol":        {"internal/mcp"},
		"github.com/chromedp":                    {"internal/browser"},
		"golang.org/x/crypto/ssh":                {"internal/sshserver"},
		"github.com/pkg/sftp":                    {"internal/guest/sftp"},
		"mvdan.cc/sh":                            {"internal/policy/shell"},
		"github.com/google/go-github":            {"internal/relay"},
		"github.com/zricethezav/gitleaks":        {"internal/contentpolicy"},
		"github.com/pelletier/go-toml":           {"internal/cli/agentcmd/mcpservers", "internal/cli/mcpcmd"},
		"go.yaml.in/yaml":                        {"internal/run/openclaw", "internal/runtime/image/npm", "internal/vm/lima", "internal/testkit/limatest"},
		"filippo.io/age":                         {"internal/secret"},
		"github.com/rogpeppe/go-internal/diff":   {"internal/tool/diff"},
		"github.com/fsnotify/fsnotify":           {"internal/sandbox/follow"},
	}
}

// isTestKit reports whether a package is for tests and measurements only.
func isTestKit(path string) bool {
	return within(path, []string{"internal/testkit", "cmd/atoll-bench"})
}

// testLibraries are for tests and test kits.
func testLibraries() []string {
	return []string{"testing", "net/http/httptest", "github.com/google/go-cmp", "github.com/rogpeppe/go-internal/testscript", "github.com/rogpeppe/go-internal/txtar", "go.uber.org/goleak"}
}

const (
	policyPackage = "internal/policy"
	// spawnPackage starts processes, those of a sandbox and the sandbox itself.
	spawnPackage = "internal/guest/spawn"
	maxLines     = 600

	wiringPackage = "internal/app"
	maxWired      = 20   // imports of this tree
	maxWiring     = 1000 // lines of code
	maxPackage    = 5000 // lines of code, without tests and packages below
)

// guestMay are the packages of this tree that the guest links.
func guestMay() []string {
	return []string{"internal/guest", "internal/wire", "internal/runtime/blueprint", "internal/version", "cmd/atoll-guest"}
}

// guestMustNot are packages of the standard library that bring more than a
// guest has use for.
func guestMustNot() []string {
	return []string{"net/http", "crypto/tls", "database/sql", "encoding/xml", "html/template", "text/template", "net/rpc", "net/smtp", "plugin"}
}

// policyMustNot are the packages, and names in packages, that reach outside.
func policyMustNot() []string {
	return []string{
		"os", "io/ioutil", "net", "net/http", "database/sql", "syscall", "golang.org/x/sys/unix", "log", "log/slog", "math/rand", "crypto/rand",
		"time.Now", "time.Since", "time.Until", "time.After", "time.NewTimer", "time.Sleep", "time.Tick",
		"path/filepath.Abs", "path/filepath.EvalSymlinks", "path/filepath.Glob", "path/filepath.Walk", "path/filepath.WalkDir",
	}
}

func meaninglessNames() []string {
	return []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "lib", "base", "types", "interfaces"}
}
