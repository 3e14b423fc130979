package cgroups

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath/blockdev"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// tree is a made-up /sys/fs/cgroup.
type tree struct {
	dir       string
	mountinfo []string
	own       []string
}

func newTree(t *testing.T) *tree { return &tree{dir: t.TempDir()} }

func (f *tree) unified(t *testing.T, at, controllers string) string {
	t.Helper()
	mount := filepath.Join(f.dir, at)
	f.write(t, filepath.Join(at, "cgroup.controllers"), controllers+"\n")
	f.write(t, filepath.Join(at, "cgroup.subtree_control"), "")
	f.write(t, filepath.Join(at, parentName, "cgroup.subtree_control"), "")
	f.mountinfo = append(f.mountinfo, fmt.Sprintf("30 23 0:26 / %s rw,nosuid - cgroup2 cgroup2 rw", mount))
	f.own = append(f.own, "0::/")
	return mount
}

func (f *tree) version1(t *testing.T, controllers string) string {
	t.Helper()
	mount := filepath.Join(f.dir, controllers)
	if err := os.MkdirAll(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	f.mountinfo = append(f.mountinfo, fmt.Sprintf("31 23 0:27 / %s rw - cgroup cgroup rw,%s", mount, controllers))
	f.own = append(f.own, fmt.Sprintf("%d:%s:/", len(f.own)+1, controllers))
	return mount
}

func (f *tree) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (f *tree) find(t *testing.T) *Host {
	t.Helper()
	f.write(t, "mountinfo", strings.Join(f.mountinfo, "\n")+"\n")
	f.write(t, "own", strings.Join(f.own, "\n")+"\n")
	h, err := find(filepath.Join(f.dir, "mountinfo"), filepath.Join(f.dir, "own"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// files reads what was written below a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(text)
	}
	return found
}

var some = Limits{Pids: 50, Memory: 1 << 20, MemorySwap: 3 << 20, CPUs: 1.5}

func TestVersion2(t *testing.T) {
	need.Root(t, "others have their groups elsewhere")
	f := newTree(t)
	mount := f.unified(t, "", "cpuset cpu io memory pids")
	h := f.find(t)
	if missing := h.Missing(some); len(missing) != 0 {
		t.Errorf("missing %v", missing)
	}
	g, err := h.Make("box", some)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"pids.max": "50", "memory.max": "1048576", "memory.swap.max": "2097152", "cpu.max": "150000 100000"}
	if diff := cmp.Diff(want, files(t, filepath.Join(mount, "atoll", "box"))); diff != "" {
		t.Error(diff)
	}
	if len(g.Dirs) != 1 || g.Dirs[0].Controller != "" {
		t.Errorf("directories %v", g.Dirs)
	}
	for _, dir := range []string{mount, filepath.Join(mount, "atoll")} {
		if text := readLine(filepath.Join(dir, "cgroup.subtree_control")); !strings.HasPrefix(text, "+") {
			t.Errorf("controllers in %s: %q", dir, text)
		}
	}
}

// A hybrid host has most controllers in version 1, and a version 2 beside them.
func TestHybrid(t *testing.T) {
	need.Root(t, "others have their groups elsewhere")
	f := newTree(t)
	pids, memory, cpu := f.version1(t, "pids"), f.version1(t, "memory"), f.version1(t, "cpu,cpuacct")
	f.unified(t, "unified", "hugetlb")
	g, err := f.find(t).Make("box", some)
	if err != nil {
		t.Fatal(err)
	}
	for mount, want := range map[string]map[string]string{
		pids:   {"pids.max": "50"},
		memory: {"memory.limit_in_bytes": "1048576", "memory.memsw.limit_in_bytes": "3145728", "memory.kmem.tcp.limit_in_bytes": "262144"},
		cpu:    {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"},
	} {
		if diff := cmp.Diff(want, files(t, filepath.Join(mount, "atoll", "box"))); diff != "" {
			t.Errorf("%s: %s", mount, diff)
		}
	}
	if len(g.Dirs) != 3 {
		t.Errorf("directories %v", g.Dirs)
	}
}

// disk is one of a made-up sysfs, with a scheduler.
func (f *tree) disk(t *testing.T, h *Host, minor uint32, scheduler string) blockdev.Disk {
	t.Helper()
	disk := blockdev.Disk{Major: 8, Minor: minor, Name: fmt.Sprintf("sd%c", 'a'+minor/16)}
	f.write(t, "dev/block/"+disk.String()+"/queue/scheduler", "none ["+scheduler+"]\n")
	h.disks.Sys = f.dir
	return disk
}

func TestDisksOfVersion2(t *testing.T) {
	need.Root(t, "others have their groups elsewhere")
	f := newTree(t)
	mount := f.unified(t, "", "io memory")
	h := f.find(t)
	disk := f.disk(t, h, 0, "bfq")
	limits := Limits{IO: IO{Disks: []blockdev.Disk{disk}, ReadBps: 1000, WriteBps: 2000, ReadIOps: 30, WriteIOps: 40, Weight: 500}}
	if missing := h.Missing(limits); len(missing) != 0 {
		t.Errorf("missing %v", missing)
	}
	if _, err := h.Make("box", limits); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"io.max": "8:0 rbps=1000 wbps=2000 riops=30 wiops=40", "io.bfq.weight": "500"}
	if diff := cmp.Diff(want, files(t, filepath.Join(mount, "atoll", "box"))); diff != "" {
		t.Error(diff)
	}
}

func TestDisksOfVersion1(t *testing.T) {
	need.Root(t, "others have their groups elsewhere")
	f := newTree(t)
	mount := f.version1(t, "blkio")
	f.unified(t, "unified", "hugetlb")
	h := f.find(t)
	disk := f.disk(t, h, 16, "bfq")
	if _, err := h.Make("box", Limits{IO: IO{Disks: []blockdev.Disk{disk}, ReadBps: 1000, WriteIOps: 40, Weight: 10}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"blkio.throttle.read_bps_device": "8:16 1000", "blkio.throttle.write_iops_device": "8:16 40", "blkio.bfq.weight": "10"}
	if diff := cmp.Diff(want, files(t, filepath.Join(mount, "atoll", "box"))); diff != "" {
		t.Error(diff)
	}
}

// A share is given where a scheduler reads it, and nowhere else.
func TestWeightNeedsAScheduler(t *testing.T) {
	need.Root(t, "others have their groups elsewhere")
	f := newTree(t)
	mount := f.unified(t, "", "io")
	h := f.find(t)
	limits := Limits{IO: IO{Disks: []blockdev.Disk{f.disk(t, h, 0, "mq-deadline")}, Weight: 1000}}
	missing := h.Missing(limits)
	if len(missing) != 1 || missing[0].Limit != Weight || !strings.Contains(errhint.Of(missing[0].Err), "/sys/block/sda/queue/scheduler") {
		t.Errorf("missing %v", missing)
	}
	f.write(t, "io.cost.qos", "8:0 enable=1 ctrl=auto\n")
	if missing := h.Missing(limits); len(missing) != 0 {
		t.Errorf("missing %v with costs", missing)
	}
	if _, err := h.Make("box", limits); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"io.weight": "10000"}, files(t, filepath.Join(mount, "atoll", "box"))); diff != "" {
		t.Error(diff)
	}
	if missing := newTree(t).find(t).Missing(Limits{IO: IO{Disks: limits.IO.Disks, ReadBps: 1}}); len(missing) != 1 || missing[0].Limit != Rate {
		t.Errorf("without control groups: missing %v", missing)
	}
}

func TestMissingControllerIsTold(t *testing.T) {
	f := newTree(t)
	f.version1(t, "pids")
	h := f.find(t)
	missing := h.Missing(some)
	var names []Limit
	for _, m := range missing {
		names = append(names, m.Limit)
	}
	if diff := cmp.Diff([]Limit{Memory, Swap, CPU}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := h.Make("box", some); err == nil {
		t.Error("a group without its limits was made")
	}
}

func TestNoLimitsNeedNothing(t *testing.T) {
	h := newTree(t).find(t)
	if missing := h.Missing(Limits{}); len(missing) != 0 {
		t.Errorf("missing %v", missing)
	}
	if g, err := h.Make("box", Limits{}); err != nil || len(g.Dirs) != 0 {
		t.Errorf("%v, %v", g, err)
	}
}

// On the machine itself: a process that is put into a group is held to its limit.
func TestRealGroup(t *testing.T) {
	need.Root(t, "it makes control groups")
	h, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	limits := Limits{Pids: 5, Memory: 64 << 20, CPUs: 0.5}
	if missing := h.Missing(limits); len(missing) != 0 {
		t.Fatalf("missing %v: this test needs root and control groups", missing)
	}
	name := "test-" + strings.ToLower(rand.Text()[:10])
	g, err := h.Make(name, limits)
	if err != nil {
		t.Fatal(err)
	}
	files, err := g.Entrances()
	if err != nil || len(files) != 3 && len(files) != 1 {
		t.Fatal(files, err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `echo 0 >&3; echo 0 >&4; echo 0 >&5; for i in 1 2 3 4 5 6 7 8; do sleep 60 >/dev/null 2>&1 </dev/null & done; echo started; wait`)
	cmd.ExtraFiles = files
	for len(cmd.ExtraFiles) < 3 { // one hierarchy holds several
		cmd.ExtraFiles = append(cmd.ExtraFiles, files[0])
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		_ = f.Close()
	}
	if err := cmd.Wait(); err == nil { // dash gives up at a fork that fails
		t.Error("nine processes were started under a limit of five")
	}
	if !strings.Contains(errs.String(), "ork") {
		t.Errorf("the shell says %q", errs.String())
	}
	again := h.Existing(name)
	if len(again.Dirs) != len(g.Dirs) {
		t.Errorf("found %v, made %v", again.Dirs, g.Dirs)
	}
	killAll(t, again)
	if err := again.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left := h.Existing(name); len(left.Dirs) != 0 {
		t.Errorf("left: %v", left.Dirs)
	}
}

// killAll ends what the shell left.
func killAll(t *testing.T, g *Group) {
	t.Helper()
	pids, err := os.ReadFile(filepath.Join(g.Dirs[0].Path, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	for pid := range strings.FieldsSeq(string(pids)) {
		if err := exec.CommandContext(t.Context(), "kill", "-9", pid).Run(); err != nil {
			t.Logf("kill %s: %v", pid, err)
		}
	}
}

// With version 2 there is one group for everything; with both, the freezer of
// version 1 is used where it is.
func TestFreezer(t *testing.T) {
	need.Root(t, "it makes control groups")
	f := newTree(t)
	mount := f.unified(t, "", "")
	z, err := f.find(t).Freezer("box")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(mount, "atoll", "box")
	f.write(t, "atoll/box/cgroup.events", "populated 1\nfrozen 1\n")
	f.write(t, "atoll/box/cgroup.procs", strconv.Itoa(os.Getpid())+"\n")
	if err := z.Freeze(t.Context(), os.Getpid()); err != nil || readLine(filepath.Join(dir, "cgroup.freeze")) != "1" {
		t.Errorf("%v: %v", err, files(t, dir))
	}
	if err := z.Thaw(); err != nil || readLine(filepath.Join(dir, "cgroup.freeze")) != "0" {
		t.Errorf("%v: %v", err, files(t, dir))
	}
	freezer := f.version1(t, "freezer")
	if _, err := f.find(t).Freezer("box"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(freezer, "atoll", "box")); err != nil {
		t.Error(err)
	}
	if _, err := newTree(t).find(t).Freezer("box"); err == nil {
		t.Error("a host without control groups holds processes")
	}
}
