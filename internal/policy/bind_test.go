package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

func TestSplitBind(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       policy.Bind
		ok         bool
	}{
		{"V36 options", "/tmp/a:/workspace-a:ro", policy.Bind{Source: "/tmp/a", Target: "/workspace-a", Options: "ro"}, true},
		{"V36 no options", "/tmp/b:/workspace-b", policy.Bind{Source: "/tmp/b", Target: "/workspace-b"}, true},
		{"V36 drive", `C:\Users\kai\workspace:/workspace:ro`, policy.Bind{Source: `C:\Users\kai\workspace`, Target: "/workspace", Options: "ro"}, true},
		{"V36 no separator", "/tmp/no-separator", policy.Bind{}, false},
		{"empty", "", policy.Bind{}, false},
		{"only a colon", ":", policy.Bind{}, true},
		{"space is kept", " /a : /b : ro ", policy.Bind{Source: " /a ", Target: " /b ", Options: " ro "}, true},
		{"backslash is kept", `/a\b:/c`, policy.Bind{Source: `/a\b`, Target: "/c"}, true},
		{"more colons are options", "/a:/b:ro:/c", policy.Bind{Source: "/a", Target: "/b", Options: "ro:/c"}, true},
		{"digit is no drive", "1:/x", policy.Bind{Source: "1", Target: "/x"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := policy.SplitBind(tc.spec)
			if ok != tc.ok || got != tc.want {
				t.Errorf("got %+v %v, want %+v %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestNormalizePath(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"V37", "/tmp/a/../b//", "/tmp/b"},
		{"above the root", "/../../etc", "/etc"},
		{"double slash in front", "//etc//passwd", "/etc/passwd"},
		{"long path prefix is a name here", "//?/etc", "/?/etc"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := policy.NormalizePath(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLastBinds(t *testing.T) {
	for _, tc := range []struct {
		name     string
		in, want []string
	}{
		{"V52", []string{"/daemon/A:/data:ro", "/daemon/B:/data/:rw"}, []string{"/daemon/B:/data/:rw"}},
		{"others stay", []string{"/a:/x", "/b:/y", "/c:/x/../x", "bad"}, []string{"/b:/y", "/c:/x/../x", "bad"}},
		{"none", nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, policy.LastBinds(tc.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanMounts(t *testing.T) {
	copied := policy.Mount{Source: "/state/copy", Target: "/workspace", Kind: policy.MountWorkspace}
	readOnlyCopy := copied
	readOnlyCopy.ReadOnly = true
	agent := policy.Mount{Source: "/home/u/ws", Target: "/agent", ReadOnly: true, Kind: policy.MountAgent}
	direct := policy.Mount{Source: "/home/u/ws", Target: "/workspace", Kind: policy.MountWorkspace}
	data := policy.Mount{Source: "/d/B", Target: "/data", Kind: policy.MountBind}

	for name, tc := range map[string]struct {
		access config.Access
		binds  []string
		want   []policy.Mount
	}{
		"none": {config.AccessNone, nil, []policy.Mount{copied}},
		"ro":   {config.AccessRO, nil, []policy.Mount{readOnlyCopy, agent}},
		"rw":   {config.AccessRW, nil, []policy.Mount{direct}},
		"V52":  {config.AccessNone, []string{"/d/A:/data:ro", "/d/B:/data/:rw"}, []policy.Mount{copied, data}},
		"a bind replaces the workspace": {config.AccessNone, []string{"/tmp/o:/workspace/:ro,z"}, []policy.Mount{
			{Source: "/tmp/o", Target: "/workspace", ReadOnly: true, Kind: policy.MountBind, Relabel: "z"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := policy.PlanMounts(policy.MountRequest{
				Access: tc.access, Workdir: "/workspace/", Copy: "/state//copy", Agent: "/home/u/ws/", Binds: tc.binds,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanMountsRefuses(t *testing.T) {
	for name, r := range map[string]policy.MountRequest{
		"unknown access":    {Access: "rwx", Workdir: "/workspace"},
		"no access":         {Workdir: "/workspace"},
		"bind to nowhere":   {Access: config.AccessRW, Workdir: "/workspace", Binds: []string{"/a"}},
		"binds in disarray": {Access: config.AccessRW, Workdir: "/workspace", Binds: []string{"/a:/b", ""}},
	} {
		if mounts, err := policy.PlanMounts(r); err == nil {
			t.Errorf("%s: gave %v", name, mounts)
		}
	}
}

func FuzzSplitBind(f *testing.F) {
	for _, seed := range []string{"/a:/b:ro", `C:\x:/y`, "", ":", "::", "a:b:c:d", "\x00:\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		bind, ok := policy.SplitBind(spec)
		if !ok {
			return
		}
		whole := bind.Source + ":" + bind.Target
		if rest, found := strings.CutPrefix(spec, whole); !found || rest != "" && rest != ":"+bind.Options {
			t.Errorf("%q came apart as %+v", spec, bind)
		}
		if strings.Contains(bind.Target, ":") {
			t.Errorf("%q has the target %q", spec, bind.Target)
		}
	})
}
