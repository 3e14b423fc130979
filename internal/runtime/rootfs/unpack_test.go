package rootfs

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestUnpackKeepsFilesLinksAndTimes(t *testing.T) {
	dir := t.TempDir()
	data := pack(t, tarDir("./"), tarDir("etc/"), tarFile("etc/motd", "hello"), tarLink("etc/link", "/etc/motd"), tarHard("etc/other", "etc/motd"),
		tarFile("/slash", "from an archiver with habits"), tarFile("deep/without/parents", "x"), tarKind("pipe", tar.TypeFifo), tarFile("etc/motd2", ""))
	layer, err := unpackInto(t.Context(), data, dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if layer.Files != 9 || layer.Size != 34 {
		t.Errorf("layer = %+v", layer)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "etc/other")); string(got) != "hello" {
		t.Errorf("hard link holds %q, %v", got, err)
	}
	one, _ := os.Stat(filepath.Join(dir, "etc/motd"))
	two, _ := os.Stat(filepath.Join(dir, "etc/other"))
	if !os.SameFile(one, two) {
		t.Error("the hard link is another file")
	}
	if to, err := os.Readlink(filepath.Join(dir, "etc/link")); to != "/etc/motd" {
		t.Errorf("link leads to %q, %v", to, err)
	}
	for _, name := range []string{".", "etc", "etc/motd", "etc/link"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || !info.ModTime().Equal(longAgo) {
			t.Errorf("time of %s = %v, %v", name, info.ModTime(), err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "slash")); err != nil || len(got) == 0 {
		t.Errorf("/slash: %q, %v", got, err)
	}
}

// Images that were built before anything was mounted on their /dev hold a few
// devices there. They are left out, and nothing takes their place.
func TestUnpackLeavesUsualDevicesOut(t *testing.T) {
	dir := t.TempDir()
	data := pack(t, tarDir("dev"), tarKind("dev/console", tar.TypeChar), tarKind("./dev/null", tar.TypeChar), tarFile("etc/motd", "x"))
	if _, err := unpackInto(t.Context(), data, dir, Limits{}); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "dev")); err != nil || len(left) > 0 {
		t.Errorf("/dev holds %v, %v", left, err)
	}
}

func TestUnpackTakesTheLastOfTwoEntries(t *testing.T) {
	dir := t.TempDir()
	data := pack(t, tarFile("a", "first"), tarFile("a", "second"), tarLink("b", "a"), tarFile("b", "not through the link"),
		tarDir("c"), tarLink("c", "/etc"), tarFile("d", "x"), tarDir("d"), tarFile("d/e", "below"), tarDir("d"))
	if _, err := unpackInto(t.Context(), data, dir, Limits{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "second", "b": "not through the link", "d/e": "below"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s = %q, %v", name, got, err)
		}
	}
}

func TestUnpackGivesNoPrivileges(t *testing.T) {
	dir := t.TempDir()
	su := item{tar.Header{Typeflag: tar.TypeReg, Name: "su", Mode: 0o6755, Uid: 12, Gid: 34, PAXRecords: map[string]string{
		"SCHILY.xattr.user.overlay.metacopy": "x", "SCHILY.xattr.user.overlay.redirect": "/etc/shadow", "SCHILY.xattr.security.capability": "cap",
	}}, "program"}
	closed := item{tar.Header{Typeflag: tar.TypeDir, Name: "closed", Mode: 0o2000, Uid: 12}, ""}
	secret := item{tar.Header{Typeflag: tar.TypeReg, Name: "closed/secret", Mode: 0}, "s"}
	if _, err := unpackInto(t.Context(), pack(t, su, closed, secret), dir, Limits{}); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"su": 0o755, "closed": fs.ModeDir | 0o700, "closed/secret": 0o400} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, mode)
		}
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
	if n, err := unix.Listxattr(filepath.Join(dir, "su"), nil); n > 0 || err != nil {
		t.Errorf("%d bytes of attributes, %v", n, err)
	}
}

// attacks are archives that must be refused, and why.
func attacks(t testing.TB) map[string]struct {
	data []byte
	want error
} {
	long := strings.Repeat("n", 256)
	return map[string]struct {
		data []byte
		want error
	}{
		"name with dot-dot":                 {pack(t, tarFile("../canary", "x")), ErrEscapes},
		"name with dot-dot in the middle":   {pack(t, tarFile("a/../../canary", "x")), ErrEscapes},
		"absolute link used as parent":      {pack(t, tarLink("a", "/"), tarFile("a/canary", "x")), ErrLinked},
		"relative link used as parent":      {pack(t, tarLink("a", "../.."), tarFile("a/canary", "x")), ErrLinked},
		"inner link used as parent":         {pack(t, tarDir("b"), tarLink("a", "b"), tarFile("a/x", "x")), ErrLinked},
		"link among made-up parents":        {pack(t, tarLink("a", "/"), tarFile("a/b/c/canary", "x")), ErrLinked},
		"directory through a link":          {pack(t, tarLink("a", "/tmp"), tarDir("a/b")), ErrLinked},
		"directory exchanged for a link":    {pack(t, tarDir("a"), tarFile("a/x", "x"), tarLink("a", "/"), tarFile("a/canary", "x")), ErrConflict},
		"empty directory turned link":       {pack(t, tarDir("a/b"), tarLink("a/b", "/"), tarFile("a/b/canary", "x")), ErrLinked},
		"file used as parent":               {pack(t, tarFile("a", "x"), tarFile("a/b", "x")), ErrConflict},
		"hard link with dot-dot":            {pack(t, tarHard("a", "../canary")), ErrEscapes},
		"hard link through a link":          {pack(t, tarLink("d", ".."), tarHard("a", "d/canary")), ErrLinked},
		"hard link to a directory":          {pack(t, tarDir("d"), tarHard("a", "d")), ErrKind},
		"hard link to nothing":              {pack(t, tarHard("a", "b")), fs.ErrNotExist},
		"hard link to itself":               {pack(t, tarFile("a", "x"), tarHard("a", "a")), ErrBadName},
		"hard link to a whiteout":           {pack(t, tarFile(".wh.a", ""), tarHard("b", "a")), ErrKind},
		"character device":                  {pack(t, tarKind("null", tar.TypeChar)), ErrDevice},
		"unusual character device":          {pack(t, tarKind("dev/mem", tar.TypeChar)), ErrDevice},
		"usual name of a block device":      {pack(t, tarKind("dev/null", tar.TypeBlock)), ErrDevice},
		"block device":                      {pack(t, tarKind("dev/sda", tar.TypeBlock)), ErrDevice},
		"unknown kind":                      {pack(t, tarKind("x", 'Z')), ErrKind},
		"whiteout of nothing":               {pack(t, tarFile(".wh.", "")), ErrBadName},
		"whiteout of the parent":            {pack(t, tarFile("a/.wh...", "")), ErrBadName},
		"whiteout through a link":           {pack(t, tarLink("a", "/"), tarFile("a/.wh.canary", "")), ErrLinked},
		"opaque mark through a link":        {pack(t, tarLink("a", "/"), tarFile("a/.wh..wh..opq", "")), ErrLinked},
		"whiteout used as directory":        {pack(t, tarFile(".wh.a/canary", "x")), ErrConflict},
		"component longer than names are":   {pack(t, tarFile(long, "x")), ErrBadName},
		"path longer than paths are":        {pack(t, tarFile(strings.Repeat("d/", 2100)+"x", "x")), ErrBadName},
		"deeper than trees are":             {pack(t, tarFile(strings.Repeat("d/", 300)+"x", "x")), ErrBadName},
		"link longer than paths are":        {pack(t, tarLink("a", strings.Repeat("d/", 2100))), ErrBadName},
		"root that is a file":               {pack(t, tarFile(".", "x")), ErrConflict},
		"root that is a link":               {pack(t, tarLink("./", "/")), ErrConflict},
		"archive that ends within a file":   {pack(t, tarFile("a", strings.Repeat("x", 2000)))[:1024], ErrTruncated},
		"archive that ends within a header": {pack(t, tarFile("a", "x"))[:300], ErrTruncated},
	}
}

func TestUnpackRefusesAttacks(t *testing.T) {
	for name, attack := range attacks(t) {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			canary := filepath.Join(outside, "canary")
			if err := os.WriteFile(canary, []byte("sings"), 0o600); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(outside, "fs")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := unpackInto(t.Context(), attack.data, dir, Limits{})
			if !errors.Is(err, attack.want) {
				t.Errorf("error = %v, want %v", err, attack.want)
			}
			if got, err := os.ReadFile(canary); string(got) != "sings" {
				t.Errorf("canary = %q, %v", got, err)
			}
			entries, err := os.ReadDir(outside)
			if err != nil || len(entries) != 2 {
				t.Errorf("outside are %v, %v", entries, err)
			}
		})
	}
}

// hole is the archive of a file that is small on disk and large to read. Only
// GNU tar writes such archives.
func hole(t *testing.T, format string, size int64) []byte {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "hole"))
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "--sparse", "--format="+format, "-cf", "-", "hole").Output()
	if err != nil || len(data) > 1<<20 {
		t.Fatalf("tar: %d bytes, %v", len(data), err)
	}
	return data
}

func TestUnpackKeepsItsLimits(t *testing.T) {
	for name, c := range map[string]struct {
		data   []byte
		limits Limits
	}{
		"files":                {pack(t, tarDir("a"), tarDir("b"), tarDir("c")), Limits{Files: 2}},
		"bytes":                {pack(t, tarFile("a", "12345"), tarFile("b", "123456")), Limits{Size: 10}},
		"one file":             {pack(t, tarFile("a", "12345678901")), Limits{Size: 10}},
		"bytes of a hole, GNU": {hole(t, "gnu", 1<<40), Limits{}},
		"bytes of a hole, PAX": {hole(t, "pax", 1<<40), Limits{}},
		"ratio of a hole, GNU": {hole(t, "gnu", 1<<30), Limits{RatioFree: 1 << 20}},
		"ratio of a hole, PAX": {hole(t, "pax", 1<<30), Limits{RatioFree: 1 << 20}},
		"implied directories":  {pack(t, tarFile("a/b/c/d/e", "")), Limits{Files: 4}},
		"names to remember":    {pack(t, tarDir("a"), tarDir(strings.Repeat("b", 200))), Limits{Names: 300}},
		"the same name again":  {pack(t, tarDir("a"), tarDir("a"), tarDir("a"), tarDir("a"), tarDir("a")), Limits{Names: 300}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := unpackInto(t.Context(), c.data, dir, c.limits); !errors.Is(err, ErrTooMuch) {
				t.Errorf("error = %v", err)
			}
		})
	}
	limits := Limits{Files: 4, Size: 11, Name: 8, Depth: 2} // with the directory that c/d is in
	if _, err := unpackInto(t.Context(), pack(t, tarFile("a", "12345"), tarFile("b", "123456"), tarDir("c/d")), t.TempDir(), limits); err != nil {
		t.Errorf("an archive of exactly the limits: %v", err)
	}
	for _, over := range []item{tarDir("c/d/e"), tarDir("ninechars")} {
		if _, err := unpackInto(t.Context(), pack(t, over), t.TempDir(), limits); !errors.Is(err, ErrBadName) {
			t.Errorf("%s: %v", over.Name, err)
		}
	}
}

func TestUnpackDoesNotCreateWhatItRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := unpackInto(t.Context(), pack(t, tarFile("big", strings.Repeat("x", 100))), dir, Limits{Size: 10}); err == nil {
		t.Fatal("accepted")
	}
	if entries, err := os.ReadDir(dir); len(entries) != 0 || err != nil {
		t.Errorf("made %v, %v", entries, err)
	}
}
