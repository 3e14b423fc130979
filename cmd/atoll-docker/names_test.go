package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The front end has several names, and is the same under each: a program of its
// own, a verb of atoll, and whatever is called docker.
func TestEveryNameIsTheSameDocker(t *testing.T) {
	t.Parallel()
	lines := []string{
		"run --rm --name NAME --network none IMAGE echo hello", "run --rm --name NAME --network none IMAGE sh -c exit_3", "exec NAME true",
		"run --bogus", "-v", "version --format {{.Client.Version}}", "frob",
	}
	for _, m := range machineries()[1:] {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			d := ourDock(t, m)
			say := func(program string, before ...string) (all []outcome) {
				defer func(own string) { d.program = own }(d.program)
				d.program = program
				for _, line := range lines {
					all = append(all, d.plain(d.run("", append(before, d.words(line)...)...)))
				}
				return all
			}
			want := say(filepath.Join(programs, "atoll-docker"))
			if want[0].Out != "hello\n" || want[1].Code != 3 || want[3].Code != 125 {
				t.Fatalf("atoll-docker: %+v", want)
			}
			if diff := cmp.Diff(want, say(filepath.Join(programs, "atoll"), "docker")); diff != "" {
				t.Errorf("atoll docker (-atoll-docker +it):\n%s", diff)
			}
			for _, name := range []string{"atoll", "atoll-docker"} {
				link := filepath.Join(openDir(t), "docker")
				must(t, os.Symlink(filepath.Join(programs, name), link))
				if diff := cmp.Diff(want, say(link)); diff != "" {
					t.Errorf("%s, called docker (-atoll-docker +it):\n%s", name, diff)
				}
			}
		})
	}
}
