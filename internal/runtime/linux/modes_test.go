package linux_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Ordinary tools work in a directory of the host in which no file can become
// set-user-ID, and those that ask for it say what was refused.
func TestToolsUnderPlainModes(t *testing.T) {
	l := newSite(t)
	work := l.dir("work")
	i := l.start(func(s *sandbox.Spec) {
		s.Workdir = "/w"
		s.Mounts = []sandbox.Mount{{Source: work, Target: "/w"}}
		s.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp"}}
		s.Env = map[string]string{"HOME": "/tmp"}
	})
	for script, want := range map[string]string{
		"install -m 755 /bin/true t1 && stat -c %a t1":                                                                                                            "755",
		"mkdir t2 && chmod 1777 t2 && stat -c %a t2":                                                                                                              "1777",
		"touch t3 && chmod 640 t3 && cp -p t3 t4 && stat -c %a t4":                                                                                                "640",
		"mkdir -p t5/d && touch t5/d/x && chmod 711 t5/d/x && tar cf t5.tar t5 && rm -r t5 && tar xpf t5.tar && stat -c %a t5/d/x":                                "711",
		"git init -q t6 && cd t6 && git -c user.name=n -c user.email=e commit -q --allow-empty -m one && git clone -q . ../t7 && cd ../t7 && git log --format=%s": "one",
		`python3 -c 'import os,shutil; open("t8","w"); os.chmod("t8",0o755); shutil.copy("t8","t9"); print(oct(os.stat("t9").st_mode&0o7777))'`:                   "0o755",
		`python3 -c 'import tempfile; print(tempfile.TemporaryFile(dir=".").write(b"x"))'`:                                                                        "1",
	} {
		if got := l.sh(i, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	for _, script := range []string{
		"install -m 4755 /bin/true s1", "cp /bin/true s2 && chmod u+s s2", "cp /bin/true s3 && chmod g+s s3",
		`python3 -c 'import os; os.close(os.open("s4", os.O_CREAT|os.O_WRONLY, 0o4755))'`,
	} {
		if out, code := l.try(i, script); code == 0 || !strings.Contains(out, "not permitted") {
			t.Errorf("%s ended with %d: %s", script, code, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "find", work, "-perm", "/6000").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("left on the host: %s, %v", out, err)
	}
}

// Where no directory of the host can be written to, packages may bring such
// files.
func TestWritableRootTakesAnyMode(t *testing.T) {
	l := newSite(t)
	i := l.start(func(s *sandbox.Spec) { s.ReadOnlyRoot, s.User = false, "0:0" })
	if got := l.sh(i, "mkdir /opt2 && install -m 4755 /bin/true /opt2/s && stat -c %a /opt2/s"); got != "4755" {
		t.Errorf("got %q", got)
	}
}

// A socket that a sandbox makes in its workspace works inside, and is not taken
// for one of the host.
func TestSocketsOfASandboxAreItsOwn(t *testing.T) {
	l := newSite(t)
	work := l.dir("work")
	i := l.start(func(s *sandbox.Spec) {
		s.Workdir, s.Mounts = "/w", []sandbox.Mount{{Source: work, Target: "/w"}}
	})
	got := l.sh(i, `python3 -c '
import socket, time
s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen(8); print("ready", flush=True)
time.sleep(600)' >out 2>&1 & until grep -q ready out 2>/dev/null; do sleep 0.1; done
python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("s"); print("connected")'`)
	if got != "connected" {
		t.Errorf("inside: %q", got)
	}
	if found, complete := (hostpath.Disk{}).SocketsBelow(work); len(found) > 0 || !complete {
		t.Errorf("taken for the host's: %q, %v", found, complete)
	}
}
