package tool_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guestUser is the user id that guests run as, nobody's.
const guestUser = 65534

// kit is a session's tools on a real guest that sees this machine's files.
type kit struct {
	t       *testing.T
	set     *tool.Set
	dir     string // the workspace
	machine *machine.Machine
}

// newKit starts a guest and gives it a workspace. The tools are all allowed
// unless edit changes that.
func newKit(t *testing.T, edit ...func(*tool.Options)) *kit {
	t.Helper()
	k := &kit{t: t}
	g := machinetest.Start(t, nil)
	k.machine = g.Machine(t, nil)
	k.dir = filepath.Join(g.Dir, "ws")
	k.mkdir("")
	mounts := []policy.Mount{{Source: k.dir, Target: k.dir}}
	o := tool.Options{
		Caller:   everybody(),
		Isolated: k.place("sbx", g, mounts),
		Workdir:  k.dir,
		Paths:    policy.NewPathMap(mounts, policy.PathOptions{Workdir: k.dir, Masks: []string{"/tmp/masked"}}),
		Environ: func(passed map[string]string) []string {
			env := []string{"PATH=/usr/bin:/bin"}
			for name, value := range passed {
				env = append(env, name+"="+value)
			}
			return env
		},
	}
	for _, e := range edit {
		e(&o)
	}
	k.set = tool.New(o)
	return k
}

// everybody may call every tool.
func everybody() tool.Caller {
	return tool.Caller{
		Policy:  policy.ResolveTools(config.ToolLists{Global: config.ToolList{Allow: []string{}, Deny: []string{}}}, ""),
		Mode:    config.ModeAll,
		Session: policy.Sessions{}.Parse("agent:main:main"),
	}
}

func (k *kit) place(name string, g *machinetest.Guest, mounts []policy.Mount) *tool.Location {
	k.t.Helper()
	m := g.Machine(k.t, nil)
	var roots []guestfs.Root
	for _, mount := range mounts {
		roots = append(roots, guestfs.Root{Path: mount.Target, ReadOnly: mount.ReadOnly})
	}
	files, err := guestfs.New(m, roots)
	if err != nil {
		k.t.Fatal(err)
	}
	return &tool.Location{Name: name, Machine: m, Files: files, Guest: g.Program}
}

// call makes a call that must not fail beyond the model.
func (k *kit) call(name string, args any) *tool.Result {
	k.t.Helper()
	result, err := k.try(name, args)
	if err != nil {
		k.t.Fatalf("%s: %v", name, err)
	}
	return result
}

func (k *kit) try(name string, args any) (*tool.Result, error) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	raw, ok := args.(string)
	if !ok {
		text, err := json.Marshal(args)
		if err != nil {
			k.t.Fatal(err)
		}
		raw = string(text)
	}
	return k.set.Call(ctx, name, jsontext.Value(raw))
}

// ok makes a call that must succeed, fails one that must not, with this in
// their text.
func (k *kit) ok(name string, args any, want ...string) *tool.Result {
	k.t.Helper()
	return k.expect(false, name, args, want)
}

func (k *kit) fails(name string, args any, want ...string) *tool.Result {
	k.t.Helper()
	return k.expect(true, name, args, want)
}

func (k *kit) expect(isError bool, name string, args any, want []string) *tool.Result {
	k.t.Helper()
	result := k.call(name, args)
	if result.IsError != isError {
		k.t.Fatalf("%s %.200v: isError is %v: %.2000s", name, args, result.IsError, result.Text)
	}
	for _, text := range want {
		if !strings.Contains(result.Text, text) {
			k.t.Errorf("%s %.200v: %q is not in\n%.2000s", name, args, text, result.Text)
		}
	}
	return result
}

// put writes a file as the guest's user would have.
func (k *kit) put(name, content string) string {
	k.t.Helper()
	path := filepath.Join(k.dir, name)
	k.mkdir(filepath.Dir(name))
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		k.t.Fatal(err)
	}
	if err := os.Chown(path, guestUser, guestUser); err != nil {
		k.t.Fatal(err)
	}
	return path
}

func (k *kit) mkdir(name string) {
	k.t.Helper()
	path := filepath.Join(k.dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		k.t.Fatal(err)
	}
	if err := os.Chown(path, guestUser, guestUser); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) get(name string) string {
	k.t.Helper()
	content, err := os.ReadFile(filepath.Join(k.dir, name))
	if err != nil {
		k.t.Fatal(err)
	}
	return string(content)
}

// args is the arguments of a call.
type args = map[string]any
