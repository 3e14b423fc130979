package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// copies are files that travel, and what is at the other end then.
var copies = []line{
	{"", "run -d --name NAME --network none --workdir /home IMAGE sh -c mkdir_-p_/home/tree/deep;_echo_inner_>/home/tree/deep/file;_exec_sleep_1000"},
	{"", "exec NAME sh -c until_test_-e_/home/tree/deep/file;_do_sleep_0.1;_done"},
	{"", "cp -q DIR/one NAME:/home/copied"},
	{"", "cp -q DIR/one NAME:/home/tree"},
	{"", "cp -q DIR/one NAME:relative"},
	{"", "cp -q DIR/dir NAME:/home/new"},
	{"", "cp -q DIR/dir NAME:/home/tree"},
	{"", "cp -q DIR/dir/. NAME:/home/flat"},
	{"", "cp -q DIR/one NAME:/home/missing/x"},
	{"", "exec NAME sh -c cd_/home;_find_._-type_f_|_sort_|_xargs_head_-n_9;_stat_-c_%a_copied_new_new/script"},
	{"", "cp -q NAME:/home/copied DIR/back"},
	{"", "cp -q NAME:/home/copied DIR/dir"},
	{"", "cp -q NAME:/home/tree DIR/tree"},
	{"", "cp -q NAME:/home/tree DIR/dir"},
	{"", "cp -q NAME:/home/tree/. DIR/flat"},
	{"", "cp -q NAME:tree/deep/file DIR/relative"},
	{"", "cp -q NAME:/home/nothing DIR/x"},
	{"", "cp -q NAME:/home/copied DIR/missing/x"},
	{"", "cp -q NAME:/home/tree DIR/one"},
	{"", "cp -q NAME:/home/copied /dev/null"},
	{"", "rm -f NAME"},
	// Containers that do not run have files too.
	{"", "create --name NAME --network none IMAGE sh -c cat_/home/before;_cat_/home/file"},
	{"", "cp -q DIR/one NAME:/home/before"},
	{"", "cp -q NAME:/home/before DIR/created"},
	{"", "ps -a --filter name=NAME --format {{.Status}}"},
	{"", "inspect -f {{.State.Status}}_{{.State.ExitCode}} NAME"},
	{"", "start -a NAME"},
	{"", "cp -q DIR/one NAME:/home/file"},
	{"", "cp -q NAME:/home/file DIR/stopped"},
	{"", "inspect -f {{.State.Status}}_{{.State.ExitCode}} NAME"},
	{"", "start -a NAME"},
}

func TestCopiesAreThoseOfTheRealDocker(t *testing.T) {
	t.Parallel()
	play := func(d *dock) []any {
		must(d.T, os.MkdirAll(filepath.Join(d.dir, "dir"), 0o755))
		must(d.T, os.WriteFile(filepath.Join(d.dir, "one"), []byte("one\n"), 0o644))
		must(d.T, os.WriteFile(filepath.Join(d.dir, "dir", "script"), []byte("#!\n"), 0o755))
		d.own()
		return []any{recite(d, copies), tree(d.T, d.dir)}
	}
	theirs := play(realDock(t))
	for _, m := range machineries() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(theirs, play(ourDock(t, m))); diff != "" {
				t.Errorf("(-docker +atoll):\n%s", diff)
			}
		})
	}
}

// Archives travel both ways, by the streams of the command line.
func TestCopiesOfArchives(t *testing.T) {
	t.Parallel()
	for _, m := range machineries() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			d := ourDock(t, m)
			d.say("", "run -d --name NAME --network none IMAGE sh -c echo_words_>/tmp/file;_exec_sleep_1000")
			d.say("", "exec NAME sh -c until_test_-s_/tmp/file;_do_sleep_0.1;_done")
			out := d.run("", "cp", d.name+":/tmp/file", "-")
			listed := exec.CommandContext(t.Context(), "tar", "-tf", "-")
			listed.Stdin = strings.NewReader(out.Out)
			if names, err := listed.CombinedOutput(); err != nil || string(names) != "file\n" {
				t.Errorf("the archive holds %q, %v: %s", names, err, out.Err)
			}
			if in := d.plain(d.run(out.Out, "cp", "-", d.name+":/nowhere")); in.Code != 1 || in.Err != "destination \"NAME:/nowhere\" must be a directory\n" {
				t.Errorf("%+v", in)
			}
			if in := d.run(out.Out, "cp", "-", d.name+":/home"); in.Code != 0 {
				t.Errorf("%+v", in)
			}
			if got := d.say("", "exec NAME cat /home/file"); got.Out != "words\n" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// own gives everything in the dock's directory to its user.
func (d *dock) own() {
	d.Helper()
	if d.user == nil {
		return
	}
	must(d.T, filepath.WalkDir(d.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(d.user.Uid), int(d.user.Gid))
	}))
}

// tree is what lies below a directory: files with their content and mode.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, dir)] = info.Mode().String() + " " + string(text)
		return err
	}))
	return found
}
