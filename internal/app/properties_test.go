package app_test

import (
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// property is what the linux backend does about a setting.
type property struct {
	value   any
	with    map[string]any // what it needs beside it
	refused bool
	depends bool // on the host, whether it is refused
}

// properties has every setting of docker.*.
func properties(s *site) map[string]property {
	return map[string]property{
		"image": {value: "host"}, "containerPrefix": {value: "p-"}, "workdir": {value: "/w"}, "readOnlyRoot": {value: false},
		"tmpfs": {value: []string{"/tmp:size=1m,nr_inodes=10"}}, "user": {value: "1000:1000"}, "env": {value: map[string]string{"A": "b"}},
		"setupCommand": {value: "true"}, "pidsLimit": {value: 50}, "memory": {value: "64m"}, "cpus": {value: 0.5},
		"memorySwap":     {value: "64m", with: map[string]any{"memory": "64m"}},
		"deviceReadBps":  {value: "20m"},
		"deviceWriteBps": {value: "20m"}, "deviceReadIOps": {value: 1000}, "deviceWriteIOps": {value: 1000},
		"storageOpt": {value: map[string]any{"size": "16m"}, with: map[string]any{"readOnlyRoot": false}}, "workspaceLimit": {value: map[string]any{"files": 10}},
		"ulimits": {value: map[string]any{"nofile": 100}}, "seccompProfile": {value: filepath.Join(s.dir, "profile.json")},
		"extraHosts": {value: []string{"x:192.0.2.1"}}, "binds": {value: []string{s.agent + "/shared:/data:ro"}},
		"dangerouslyAllowReservedContainerTargets": {value: true}, "dangerouslyAllowExternalBindSources": {value: true},
		"dangerouslyAllowContainerNamespaceJoin": {value: true},

		"network": {value: "bridge", refused: true}, "capDrop": {value: []string{"NET_RAW"}, refused: true}, "gpus": {value: "all", refused: true},
		"apparmorProfile": {value: "some", refused: true}, "dns": {value: []string{"192.0.2.53"}, refused: true},
		"blkioWeight": {value: 100, depends: true}, // on the schedulers of its disks
	}
}

// Every setting of docker.* has an entry above, and the linux backend makes a
// sandbox with it, or refuses to and names it.
func TestEveryPropertyIsHonouredOrRefused(t *testing.T) {
	t.Parallel()
	names := properties(newSite(t))
	for field := range reflect.TypeFor[config.Docker]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, ok := names[name]; !ok {
			t.Errorf("docker.%s: nobody says what becomes of it", name)
		}
	}
	for name := range maps.Keys(names) {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.write(filepath.Join(s.dir, "profile.json"), `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["acct"],"action":"SCMP_ACT_ERRNO"}]}`)
			s.mkdir(filepath.Join(s.agent, "shared"))
			p := properties(s)[name]
			s.set("agents.defaults.sandbox.backend", "linux")
			s.set("agents.defaults.sandbox.docker.image", "host")
			for key, value := range p.with {
				s.set("agents.defaults.sandbox.docker."+key, value)
			}
			s.set("agents.defaults.sandbox.docker."+name, p.value)
			a := s.open()
			in, err := a.Provide(t.Context(), session("property"), provide.Options{})
			if p.refused || p.depends && err != nil {
				if err == nil || !strings.Contains(err.Error(), "docker."+name) {
					t.Errorf("%v, want a refusal that names it", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			discardLater(t, a, in)
		})
	}
}
