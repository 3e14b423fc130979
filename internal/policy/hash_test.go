package policy_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

// vectorSandbox is the configuration of vector V11.
func vectorSandbox() config.Sandbox {
	return config.Sandbox{
		Backend:         "auto",
		WorkspaceAccess: config.AccessRW,
		Docker: config.Docker{
			Image: "openclaw-sandbox:test", ContainerPrefix: "openclaw-sbx-", Workdir: "/workspace",
			ReadOnlyRoot: true, Tmpfs: []string{"/tmp", "/var/tmp", "/run"}, Network: "none",
			CapDrop: []string{"ALL"}, Env: map[string]string{"LANG": "C.UTF-8"},
			DNS:        []string{"1.1.1.1", "8.8.8.8"},
			ExtraHosts: []string{"host.docker.internal:host-gateway"},
			Binds:      []string{"/tmp/workspace:/workspace:rw", "/tmp/cache:/cache:ro"},
		},
	}
}

var vectorDirs = policy.Dirs{Workspace: "/tmp/workspace", Agent: "/tmp/workspace"}

const vectorHash = "42f0486f9af81cf47dc2f36f2702d8c97b42d8f98dbcfe94e20878f21d30447c"

func TestConfigHashVectors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*config.Sandbox)
		want   string
	}{
		{"V11", func(*config.Sandbox) {}, vectorHash},
		{"V12", func(s *config.Sandbox) {
			s.Docker.Env = map[string]string{"LANG": "C.UTF-8", "B": "2", "A": "1"}
		}, "bd36a1b7bb5b539d4cc7c06ebf2b851d44a9de5d595f6578cc567715fe0854d5"},
		{"V13 tmpfs reversed", func(s *config.Sandbox) {
			slices.Reverse(s.Docker.Tmpfs)
		}, "415a66c432afbebe6991eb29ad6b785e539a60e0067a9ec0164c061b59b75d09"},
		{"V13 binds reversed", func(s *config.Sandbox) {
			slices.Reverse(s.Docker.Binds)
		}, "977a8b95d6efcbe7a0643fcaabe0a4ad1dd9124753f473a7d4cfc438f478a50c"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := vectorSandbox()
			tc.change(&s)
			if got := policy.ConfigHash(s, vectorDirs); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// Every setting of a container is part of its hash: a field that is added to
// the configuration and forgotten here fails this test.
func TestConfigHashSeesEveryDockerField(t *testing.T) {
	for field := range reflect.TypeFor[config.Docker]().Fields() {
		t.Run(field.Name, func(t *testing.T) {
			s := vectorSandbox()
			value := reflect.ValueOf(&s.Docker).Elem().FieldByIndex(field.Index)
			value.Set(otherValue(t, value))
			if policy.ConfigHash(s, vectorDirs) == vectorHash {
				t.Errorf("%s does not change the hash", field.Name)
			}
		})
	}
}

// otherValue makes a value that differs from the one given.
func otherValue(t *testing.T, v reflect.Value) reflect.Value {
	soft := int64(1)
	switch v.Interface().(type) {
	case string:
		return reflect.ValueOf(v.String() + "x")
	case bool:
		return reflect.ValueOf(!v.Bool())
	case int64:
		return reflect.ValueOf(int64(7))
	case float64:
		return reflect.ValueOf(0.5)
	case []string:
		return reflect.ValueOf([]string{"other"})
	case map[string]string:
		return reflect.ValueOf(map[string]string{"OTHER": "1"})
	case map[string]config.Ulimit:
		return reflect.ValueOf(map[string]config.Ulimit{"nofile": {Soft: &soft}})
	case map[string]config.Size:
		return reflect.ValueOf(map[string]config.Size{"size": {Text: "1g"}})
	case config.Size:
		return reflect.ValueOf(config.Size{Text: "512m"})
	}
	t.Fatalf("no other value for %s", v.Type())
	return v
}

func TestConfigHashSeesWhatOnlyAtollKnows(t *testing.T) {
	for name, change := range map[string]func(*config.Sandbox){
		"backend":          func(s *config.Sandbox) { s.Backend = "docker" },
		"networkAllow":     func(s *config.Sandbox) { s.NetworkAllow = []string{"a.example"} },
		"networkExecAllow": func(s *config.Sandbox) { s.NetworkExecAllow = []string{"git"} },
		"secret env":       func(s *config.Sandbox) { s.AllowSecretEnv = []string{"X_TOKEN"} },
		"access":           func(s *config.Sandbox) { s.WorkspaceAccess = config.AccessRO },
	} {
		s := vectorSandbox()
		change(&s)
		if policy.ConfigHash(s, vectorDirs) == vectorHash {
			t.Errorf("%s does not change the hash", name)
		}
	}
	same := vectorSandbox()
	same.NetworkAllow, same.Backend = []string{}, "auto"
	if policy.ConfigHash(same, vectorDirs) != vectorHash {
		t.Error("an empty allow list and the default backend change the hash")
	}
}

func TestNumbersAndStringsHashDifferently(t *testing.T) {
	text, number := vectorSandbox(), vectorSandbox()
	text.Docker.Memory = config.Size{Text: "1024"}
	number.Docker.Memory = config.Size{Text: "1024", Number: true}
	if policy.ConfigHash(text, vectorDirs) == policy.ConfigHash(number, vectorDirs) {
		t.Error(`"1024" and 1024 have one hash`)
	}
}

func TestCanonicalJSON(t *testing.T) {
	for _, tc := range []struct {
		name  string
		value any
		want  string
	}{
		// The input of the later version, whose keys V14 lists.
		{"V14", map[string]any{
			"workspaceDir": "/w", "workspaceAccess": "rw", "mountFormatVersion": int64(4), "managedMounts": []string{"a"},
			"docker": map[string]any{}, "createArgsEpoch": "e", "agentWorkspaceDir": "/w",
		}, `{"agentWorkspaceDir":"/w","createArgsEpoch":"e","docker":{},"managedMounts":["a"],"mountFormatVersion":4,"workspaceAccess":"rw","workspaceDir":"/w"}`},
		{"V15", map[string]any{"a": nil, "B": nil, "_c": nil, "A": nil, "b": nil, "10": nil, "9": nil},
			`{"9":null,"10":null,"_c":null,"a":null,"A":null,"b":null,"B":null}`},
		{"section 2.5", map[string]any{"X1": nil, "XA": nil, "X_Y": nil, "_x": nil, "z": nil, "Z": nil, "aB": nil, "Ab": nil},
			`{"_x":null,"aB":null,"Ab":null,"X_Y":null,"X1":null,"XA":null,"z":null,"Z":null}`},
		{"index keys", map[string]any{"01": nil, "4294967295": nil, "4294967294": nil, "0": nil, "-1": nil},
			`{"0":null,"4294967294":null,"-1":null,"01":null,"4294967295":null}`},
		{"strings", "\"\\/<>&\b\t\n\f\r\x01\x7f\u2028é😀", `"\"\\/<>&\b\t\n\f\r\u0001` + "\x7f\u2028é😀" + `"`},
		{"numbers", []any{int64(5), 0.5, 1e21, 1e-7, 123456789012345680000.0, math.Copysign(0, -1), 1.5e300, math.NaN(), -2.50, 1e-6},
			`[5,0.5,1e+21,1e-7,123456789012345680000,0,1.5e+300,null,-2.5,0.000001]`},
		{"others", []any{true, false, nil, []string{}, map[string]any{}}, `[true,false,null,[],{}]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := policy.CanonicalJSON(tc.value); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// The order of all printable ASCII characters, as localeCompare of Node.js
// with ICU 78 gives it.
func TestKeyOrderOfASCII(t *testing.T) {
	const order = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ"
	object := map[string]any{}
	for _, r := range order {
		object["x"+string(r)] = nil
	}
	last := -1
	text := policy.CanonicalJSON(object)
	for _, r := range order {
		key := strings.TrimSuffix(strings.TrimPrefix(policy.CanonicalJSON(map[string]any{"x" + string(r): nil}), "{"), "}")
		at := strings.Index(text, key)
		if at <= last {
			t.Errorf("%q is out of order", r)
		}
		last = at
	}
}

func TestMountsHash(t *testing.T) {
	a := policy.Mount{Source: "/a", Target: "/x", Kind: policy.MountBind}
	b := policy.Mount{Source: "/b", Target: "/y", Kind: policy.MountBind}
	readOnly := a
	readOnly.ReadOnly = true
	seen := map[string]bool{}
	for _, mounts := range [][]policy.Mount{nil, {a}, {b}, {a, b}, {b, a}, {readOnly}} {
		seen[policy.MountsHash(mounts)] = true
	}
	if len(seen) != 6 {
		t.Errorf("6 lists of mounts have %d hashes", len(seen))
	}
}

// Settings change with everything that the hash is made of, and show no value of
// a variable.
func TestSettings(t *testing.T) {
	box := config.Sandbox{WorkspaceAccess: config.AccessRW, Docker: plain()}
	box.Docker.Env = map[string]string{"TOKEN": "very-secret"}
	before := policy.Settings(box, policy.Dirs{Workspace: "/w", Agent: "/a"})
	if before["workspaceDir"] != `"/w"` || before["workspaceAccess"] != `"rw"` || before["docker.image"] == "" {
		t.Errorf("%v", before)
	}
	box.Docker.Env = map[string]string{"TOKEN": "other-secret"}
	after := policy.Settings(box, policy.Dirs{Workspace: "/w", Agent: "/a"})
	if before["docker.env.TOKEN"] == after["docker.env.TOKEN"] {
		t.Error("a changed variable does not show")
	}
	for key, value := range after {
		if strings.Contains(value, "secret") {
			t.Errorf("%s: %s", key, value)
		}
	}
}
