package dockercli

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// toEnter is what of a container an entry tells.
func toEnter(c *Container) *Container {
	return &Container{
		ID: c.ID, Name: c.Name, Hostname: c.Hostname, Workdir: c.Workdir, User: c.User, Home: c.Home, Env: c.Env,
		Main: Life{Process: c.Main.Process, Attached: c.Main.Attached}, Guest: c.Guest,
	}
}

func TestAnEntryTellsWhatTheRecordTells(t *testing.T) {
	t.Parallel()
	guest := &Guest{Socket: "/run/a b\n/guest", PID: 4711, Birth: "boot:123", Lease: "lease", Paused: true}
	for name, c := range map[string]*Container{
		"nothing":       {},
		"no guest":      {Env: []string{"A=1"}, Hostname: "h", Main: Life{ExitCode: 3}},
		"all":           {Env: []string{"A=1", "B=", "C=two\nlines"}, Hostname: "h", Workdir: "/w", User: "1:2", Home: "/h", Main: Life{Process: "p", Attached: true}, Guest: guest},
		"like an entry": {Env: []string{"entry 12\nx"}, Workdir: "/entry 3\n", Guest: guest},
		"a zero byte":   {Env: []string{"A=\x00B=1"}, Hostname: "h", Guest: guest},
		"more":          {Workdir: "/w", Cmd: []string{"true"}, Labels: map[string]string{"a": "b"}, Guest: guest},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{dir: t.TempDir()}
			c.Name, c.ID = "some", strings.Repeat("ab", 32)
			if err := s.save(c); err != nil {
				t.Fatal(err)
			}
			whole, err := s.find("some")
			if err != nil || !reflect.DeepEqual(whole, c) {
				t.Fatalf("the record: %+v, %v, want %+v", whole, err, c)
			}
			got, err := s.findToEnter("ab")
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Env) == 0 {
				got.Env = nil
			}
			if got, want := toEnter(got), toEnter(c); !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestMalformedEntriesAreRefused(t *testing.T) {
	t.Parallel()
	s := &shelf{dir: t.TempDir()}
	for _, record := range []string{
		"entry", "entry \n{}", "entry x\n{}", "entry -1\n{}", "entry 99999\n{}", "entry 2\n",
		"entry/2", "entry/2 \n{}", "entry/2 x\n{}", "entry/2 -1\n{}", "entry/2 99999\n{}", "entry/2 3\na\x00b{}", "entry/2 2\n",
	} {
		if err := os.WriteFile(s.recordPath("some"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := s.findToEnter("some"); err == nil {
			t.Errorf("%q: %+v", record, c)
		}
	}
}

// TestRecordsWithAnOlderEntry are read whole.
func TestRecordsWithAnOlderEntry(t *testing.T) {
	t.Parallel()
	s := &shelf{dir: t.TempDir()}
	record := "entry 3\na\x00b" + `{"name":"some","workdir":"/w"}`
	if err := os.WriteFile(s.recordPath("some"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, find := range map[string]func(string) (*Container, error){"find": s.find, "findToEnter": s.findToEnter} {
		if c, err := find("some"); err != nil || c.Name != "some" || c.Workdir != "/w" {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}
