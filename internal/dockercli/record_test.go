package dockercli

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	guest := &Guest{Socket: "/run/a b\n/guest", PID: 4711, Start: "boot:123", Lease: "lease", Paused: true}
	for name, c := range map[string]*Container{
		"nothing":       {},
		"no guest":      {Env: []string{"A=1"}, Hostname: "h", Main: MainCommand{ExitCode: 3}},
		"all":           {Env: []string{"A=1", "B=", "C=two\nlines"}, Hostname: "h", Workdir: "/w", User: "1:2", Home: "/h", Main: MainCommand{Process: "p", Attached: true}, Guest: guest},
		"like a header": {Env: []string{"entry 12\nx"}, Workdir: "/entry 3\n", Guest: guest},
		"a zero byte":   {Env: []string{"A=\x00B=1"}, Hostname: "h", Guest: guest},
		"more":          {Workdir: "/w", Cmd: []string{"true"}, Labels: map[string]string{"a": "b"}, Guest: guest},
	} {
		t.Run(name, func(t *testing.T) {
			s := &recordStore{dir: t.TempDir()}
			c.Name, c.ID = "some", strings.Repeat("ab", 32)
			if err := s.save(c); err != nil {
				t.Fatal(err)
			}
			for _, ref := range []string{"some", "ab", c.ID} {
				if got, err := s.find(ref); err != nil || !reflect.DeepEqual(got, c) {
					t.Errorf("%s: %+v, %v, want %+v", ref, got, err, c)
				}
			}
		})
	}
}

func TestMalformedRecordsAreRefused(t *testing.T) {
	t.Parallel()
	s := &recordStore{dir: t.TempDir()}
	for _, record := range []string{
		"", "{", "[]", "entry", "entry \n{}", "entry x\n{}", "entry -1\n{}", "entry 99999\n{}", "entry 2\n",
		"entry/2", "entry/2 \n{}", "entry/2 x\n{}", "entry/2 -1\n{}", "entry/2 99999\n{}", "entry/2 2\n",
	} {
		if err := os.WriteFile(s.recordPath("some"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := s.find("some"); err == nil {
			t.Errorf("%q: %+v", record, c)
		}
	}
}

// Records of earlier versions begin with a header.
func TestRecordsWithAHeader(t *testing.T) {
	t.Parallel()
	s := &recordStore{dir: t.TempDir()}
	for _, header := range []string{"entry 3\na\x00b", "entry/2 3\na\x00b"} {
		if err := os.WriteFile(s.recordPath("some"), []byte(header+`{"name":"some","workdir":"/w"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := s.find("some"); err != nil || c.Name != "some" || c.Workdir != "/w" {
			t.Errorf("%q: %+v, %v", header, c, err)
		}
	}
}

func TestStartTimes(t *testing.T) {
	t.Parallel()
	const after = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21\n"
	for stat, want := range map[string]string{
		"12 (guest) S" + after:     "777",
		"12 (a) Z 1 (b) S" + after: "777", // a name may look like anything
		"12 () ) S" + after:        "777",
		"12 (guest) Z" + after:     "",
		"12 (guest) X" + after:     "",
		"12 (guest) S 1 2 3":       "",
		"":                         "",
		"12 (guest) S" + strings.TrimSuffix(after, " 20 21\n") + "\n": "777",
	} {
		if got := startTime(stat); got != want {
			t.Errorf("%q: %q, want %q", stat, got, want)
		}
	}
}
