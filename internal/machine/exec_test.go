package machine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

func TestExecResults(t *testing.T) {
	_, m := start(t)
	tests := []struct {
		name     string
		command  machine.Command
		wantCode int
		wantSig  string
		wantOut  string
		wantErr  string
	}{
		{name: "success", command: machine.Command{Argv: []string{"/bin/true"}}},
		{name: "exit code", command: machine.Command{Shell: "exit 42"}, wantCode: 42},
		{name: "found on the default path", command: machine.Command{Argv: []string{"echo", "hi"}}, wantOut: "hi\n"},
		{name: "both outputs", command: machine.Command{Shell: "echo out; echo err >&2"}, wantOut: "out\n", wantErr: "err\n"},
		{name: "signal", command: machine.Command{Shell: "kill -USR1 $$"}, wantCode: 138, wantSig: "SIGUSR1"},
		{name: "kill", command: machine.Command{Shell: "kill -9 $$"}, wantCode: 137, wantSig: "SIGKILL"},
		{name: "exact environment", command: machine.Command{Argv: []string{"/usr/bin/env"}, Env: []string{"A=1", "PATH=/bin", "B=x y"}}, wantOut: "A=1\nPATH=/bin\nB=x y\n"},
		{name: "environment without PATH", command: machine.Command{Argv: []string{"/usr/bin/env"}}, wantOut: "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"},
		{name: "directory", command: machine.Command{Argv: []string{"pwd"}, Dir: "/usr/lib"}, wantOut: "/usr/lib\n"},
		{name: "program beside the directory", command: machine.Command{Argv: []string{"./true"}, Dir: "/bin"}},
		{name: "no input", command: machine.Command{Argv: []string{"cat"}}},
		{name: "input", command: machine.Command{Argv: []string{"cat"}, Stdin: strings.NewReader("some input")}, wantOut: "some input"},
		{name: "input that is not read", command: machine.Command{Argv: []string{"true"}, Stdin: bytes.NewReader(make([]byte, 10<<20))}},
		{name: "arguments that are not text", command: machine.Command{Argv: []string{"printf", "%s", "a\xff\x01\nb\"\\é"}}, wantOut: "a\xff\x01\nb\"\\é"},
		{name: "its own session", command: machine.Command{Shell: `[ "$(ps -o sid= -p $$ | tr -d ' ')" = $$ ] && echo leader`}, wantOut: "leader\n"},
		{name: "no descriptors but the standard ones", command: machine.Command{Shell: "ls /proc/$$/fd; :"}, wantOut: "0\n1\n2\n"},
		{name: "no signal blocked or ignored", command: machine.Command{Argv: []string{"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"}}, wantOut: "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, m, &tt.command)
			if got.ExitCode != tt.wantCode || got.Signal != tt.wantSig {
				t.Errorf("exit %d %q, want %d %q", got.ExitCode, got.Signal, tt.wantCode, tt.wantSig)
			}
			if got.out != tt.wantOut || got.err != tt.wantErr {
				t.Errorf("out %q err %q, want %q %q", got.out, got.err, tt.wantOut, tt.wantErr)
			}
			if got.Stdout.Total != int64(len(tt.wantOut)) || got.Stdout.Lost != 0 || got.Left {
				t.Errorf("accounts %+v, left %v", got.Stdout, got.Left)
			}
		})
	}
}

func TestExecRefusals(t *testing.T) {
	g, m := start(t)
	sh(t, m, "cd "+g.Dir+"; echo x > plain; printf '#!/no/such/interpreter\n' > script; chmod +x script; echo junk > junk; chmod +x junk")
	tests := []struct {
		name    string
		command machine.Command
		want    error
		status  int
	}{
		{"missing", machine.Command{Argv: []string{"no-such-program"}}, machine.ErrNotFound, 127},
		{"missing path", machine.Command{Argv: []string{"/no/such/program"}}, machine.ErrNotFound, 127},
		{"below a file", machine.Command{Argv: []string{"/etc/passwd/x"}}, machine.ErrNotFound, 127},
		{"not executable", machine.Command{Argv: []string{g.Dir + "/plain"}}, machine.ErrNotExecutable, 126},
		{"not executable on the path", machine.Command{Argv: []string{"plain"}, Env: []string{"PATH=" + g.Dir}}, machine.ErrNotExecutable, 126},
		{"directory", machine.Command{Argv: []string{"/etc"}}, machine.ErrNotExecutable, 126},
		{"missing interpreter", machine.Command{Argv: []string{g.Dir + "/script"}}, machine.ErrNotExecutable, 126},
		{"unknown format", machine.Command{Argv: []string{g.Dir + "/junk"}}, machine.ErrNotExecutable, 126},
		{"missing directory", machine.Command{Argv: []string{"true"}, Dir: "/no/such"}, machine.ErrNoDirectory, 125},
		{"file as directory", machine.Command{Argv: []string{"true"}, Dir: "/etc/passwd"}, machine.ErrNoDirectory, 125},
		{"argument too long", machine.Command{Argv: []string{"true", strings.Repeat("x", 200_000)}}, machine.ErrInvalid, 125},
		{"request too long", machine.Command{Argv: []string{"true"}, Env: slices.Repeat([]string{"X=" + strings.Repeat("x", 100_000)}, 20)}, machine.ErrInvalid, 125},
		{"nothing", machine.Command{}, machine.ErrInvalid, 125},
		{"both", machine.Command{Argv: []string{"true"}, Shell: "true"}, machine.ErrInvalid, 125},
		{"empty name", machine.Command{Argv: []string{""}}, machine.ErrInvalid, 125},
		{"zero byte", machine.Command{Argv: []string{"echo", "a\x00b"}}, machine.ErrInvalid, 125},
		{"environment without a value", machine.Command{Argv: []string{"true"}, Env: []string{"NAME"}}, machine.ErrInvalid, 125},
		{"environment without a name", machine.Command{Argv: []string{"true"}, Env: []string{"=x"}}, machine.ErrInvalid, 125},
		{"negative time", machine.Command{Argv: []string{"true"}, Timeout: -1}, machine.ErrInvalid, 125},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, err := m.Exec(patience(t), &tt.command)
			if !errors.Is(err, tt.want) || result != nil {
				t.Fatalf("result %+v, error %v; want %v", result, err, tt.want)
			}
			if got := machine.ExitStatus(err); got != tt.status {
				t.Errorf("exit status %d, want %d", got, tt.status)
			}
			t.Log(err)
		})
	}
	if err := m.Ping(patience(t)); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

func TestExecBinaryOutput(t *testing.T) {
	_, m := start(t)
	data := make([]byte, 3<<20+7)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(data)
	var out bytes.Buffer
	run(t, m, &machine.Command{Argv: []string{"cat"}, Stdin: bytes.NewReader(data), Stdout: &out})
	if !bytes.Equal(out.Bytes(), data) {
		t.Errorf("%d bytes came back, and not the same", out.Len())
	}
}

func TestExecHundredMegabytes(t *testing.T) {
	_, m := start(t)
	const size = 100 << 20
	sum, want := sha256.New(), sha256.New()
	got := run(t, m, &machine.Command{Shell: fmt.Sprintf("yes 0123456789abcdef | head -c %d", size), Stdout: sum})
	line := bytes.Repeat([]byte("0123456789abcdef\n"), 1<<16)
	for left := size; left > 0; left -= min(left, len(line)) {
		want.Write(line[:min(left, len(line))])
	}
	if !bytes.Equal(sum.Sum(nil), want.Sum(nil)) || got.Stdout.Total != size {
		t.Errorf("%d bytes came, and not the right ones", got.Stdout.Total)
	}
}

func TestExecBigEnvironment(t *testing.T) {
	_, m := start(t)
	var env []string
	for i := range 4000 {
		env = append(env, fmt.Sprintf("VARIABLE_%d=%s", i, strings.Repeat("v", 100)))
	}
	got := run(t, m, &machine.Command{Argv: []string{"/usr/bin/env"}, Env: append(env, "PATH=/bin")})
	if n := strings.Count(got.out, "\n"); n != 4001 {
		t.Errorf("%d variables arrived", n)
	}
}

func TestExecInputEndsWhenItEnds(t *testing.T) {
	_, m := start(t)
	r, w := io.Pipe()
	var out bytes.Buffer
	go func() {
		for i := range 3 {
			fmt.Fprintf(w, "line %d\n", i)
			time.Sleep(20 * time.Millisecond)
		}
		_ = w.Close()
	}()
	got := run(t, m, &machine.Command{Shell: "cat; echo done", Stdin: r, Stdout: &out})
	if want := "line 0\nline 1\nline 2\ndone\n"; out.String() != want || got.ExitCode != 0 {
		t.Errorf("%q", out.String())
	}
}

func TestExecStreamsLive(t *testing.T) {
	_, m := start(t)
	r, w := io.Pipe()
	go func() {
		_, err := m.Exec(patience(t), &machine.Command{Shell: "echo first; read x; echo $x", Stdin: strings.NewReader("second\n"), Stdout: w})
		w.CloseWithError(err)
	}()
	first := make([]byte, 6)
	if _, err := io.ReadFull(r, first); err != nil || string(first) != "first\n" {
		t.Fatalf("%q %v", first, err)
	}
	rest, err := io.ReadAll(r)
	if string(rest) != "second\n" || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}

func TestExecAccountsForTimeAndMemory(t *testing.T) {
	_, m := start(t)
	got := sh(t, m, `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; head -c 60000000 /dev/zero | tail -c 50000000 > /dev/null`)
	if got.User < 50*time.Millisecond || got.Duration < got.User/4 {
		t.Errorf("user %v, system %v, duration %v", got.User, got.System, got.Duration)
	}
	if got.MaxRSS < 40<<20 || got.MaxRSS > 500<<20 {
		t.Errorf("peak memory %d", got.MaxRSS)
	}
}

func TestExecOutputLimit(t *testing.T) {
	_, m := start(t)
	tests := []struct {
		name   string
		script string
		limit  int64
		want   string
		lost   int64
	}{
		{"short", "echo hello", 100, "hello\n", 0},
		{"exact", "printf 0123456789", 10, "0123456789", 0},
		{"one over", "printf 0123456789x", 10, "012346789x", 1},
		{"far over", "printf AAAAA; head -c 50000000 /dev/zero; printf ZZZZZ", 10, "AAAAAZZZZZ", 50_000_000},
		{"in steps", "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.01; done", 8, "1\n2\n8\n9\n", 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			got := run(t, m, &machine.Command{Shell: tt.script, Stdout: &out, OutputLimit: tt.limit})
			if out.String() != tt.want || got.Stdout.Lost != tt.lost || got.Stdout.Total != int64(len(tt.want))+tt.lost {
				t.Errorf("%q, %+v", out.String(), got.Stdout)
			}
			if tt.lost > 0 && got.Stdout.Head != tt.limit-tt.limit/2 {
				t.Errorf("head %d", got.Stdout.Head)
			}
		})
	}
}

func TestExecWriterThatFails(t *testing.T) {
	_, m := start(t)
	full := errors.New("disk full")
	_, err := m.Exec(patience(t), &machine.Command{Shell: "yes", Stdout: writerFunc(func([]byte) (int, error) { return 0, full }), Grace: time.Millisecond})
	if !errors.Is(err, full) {
		t.Fatalf("error %v", err)
	}
	if left := alive(t, m); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestExecBackgroundChildDoesNotHoldTheResult(t *testing.T) {
	_, m := start(t)
	begin := time.Now()
	got := sh(t, m, "echo hi; sleep 300 & exit 5")
	if got.ExitCode != 5 || got.out != "hi\n" || !got.Left {
		t.Errorf("%+v", got)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if left := alive(t, m); !slices.Contains(left, "sleep 300") {
		t.Errorf("the background child should live on: %q", left)
	}
	got = run(t, m, &machine.Command{Shell: "sleep 301 & exit 6", EndTree: true, Grace: time.Millisecond})
	if left := alive(t, m); got.ExitCode != 6 || slices.Contains(left, "sleep 301") {
		t.Errorf("EndTree left %q", left)
	}
}

func TestExecBackgroundChildKeepsWriting(t *testing.T) {
	g, m := start(t)
	sh(t, m, "cd "+g.Dir+"; (for i in 1 2 3 4 5 6 7 8 9 10; do echo noise; sleep 0.05; done; echo alive > proof) & exit 0")
	eventually(t, "the child survives writing to an output that nobody reads", func() bool {
		return sh(t, m, "cat "+g.Dir+"/proof").out == "alive\n"
	})
}

func TestExecConcurrently(t *testing.T) {
	_, m := start(t)
	results := make(chan error)
	const n = 64
	for i := range n {
		go func() {
			var out bytes.Buffer
			result, err := m.Exec(patience(t), &machine.Command{Shell: fmt.Sprintf("echo %d; exit %d", i, i), Stdout: &out})
			if err == nil && (result.ExitCode != i || out.String() != fmt.Sprintln(i)) {
				err = fmt.Errorf("command %d: %+v %q", i, result, out.String())
			}
			results <- err
		}()
	}
	for range n {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestExecTooManyAtOnce(t *testing.T) {
	_, m := start(t)
	ctx, cancel := context.WithCancel(patience(t))
	const n, limit = 200, 128
	results := make(chan error, n)
	for range n {
		go func() {
			_, err := m.Exec(ctx, &machine.Command{Argv: []string{"sleep", "100"}, Grace: time.Millisecond})
			results <- err
		}()
	}
	busy := 0
	for range n - limit {
		if err := <-results; errors.Is(err, machine.ErrBusy) {
			busy++
		} else {
			t.Errorf("unexpected: %v", err)
		}
	}
	cancel()
	for range limit {
		<-results
	}
	if busy != n-limit {
		t.Errorf("%d were refused, want %d", busy, n-limit)
	}
	eventually(t, "all are ended", func() bool { return len(alive(t, m)) == 0 })
}
