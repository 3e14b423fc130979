package secret_test

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/atoll-run/atoll/internal/secret"
)

const hardenChild = "ATOLL_TEST_HARDEN"

func TestMain(m *testing.M) {
	if os.Getenv(hardenChild) != "" {
		if err := secret.Harden(); err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString("hard\n")
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	os.Exit(m.Run())
}

// What a hardened process holds belongs to root in /proc, also of another user's process, so
// others of the same user cannot read its memory or environment.
func TestAHardenedProcessIsPrivate(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), hardenChild+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	proc := "/proc/" + strconv.Itoa(cmd.Process.Pid)
	limits, err := os.ReadFile(proc + "/limits")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(limits) {
		if bytes.HasPrefix(line, []byte("Max core file size")) && !bytes.Contains(line, []byte(" 0 ")) {
			t.Errorf("%s", line)
		}
	}
	if os.Geteuid() == 0 {
		return // root reads everything
	}
	for _, name := range []string{"environ", "mem", "maps"} {
		if _, err := os.ReadFile(proc + "/" + name); err == nil {
			t.Errorf("%s can be read", name)
		}
	}
}
