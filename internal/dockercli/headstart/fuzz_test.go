package headstart_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/dockercli/headstart"
	"github.com/atoll-run/atoll/internal/wire"
)

// FuzzWhatAGuestSays: what is taken for the end of a command is one to whoever
// reads frames elsewhere, with the same output and code; of anything else nothing
// is shown, and all is left.
func FuzzWhatAGuestSays(f *testing.F) {
	hello, sorry := frame(wire.FrameStdout, "hello"), frame(wire.FrameStderr, "sorry")
	for _, seed := range []string{
		"", started, started + success, started + hello + sorry + frame(wire.FrameExit, `{"code":3,"stdout":5,"stderr":5}`),
		started + hello[:7], hello, started + success + "x", started + frame(wire.FrameExit, `{"code":-3,"userUs":1}`),
		started + frame(wire.FrameExit, `{"code":3,"signal":"SIGKILL"}`), started + "\x14\xff\xff\xff\xff{}", started + frame(wire.FrameGap, "{}"),
	} {
		f.Add([]byte(seed))
	}
	out, problems := scratch(f), scratch(f)
	f.Fuzz(func(t *testing.T, frames []byte) {
		frames = frames[:min(len(frames), 8<<10)]
		call := &headstart.Call{}
		call.Streams(nil, out, problems)
		said, code, left := call.Understand(frames)
		shown := [2]string{drain(t, out), drain(t, problems)}
		switch {
		case said != headstart.End && (string(left) != string(frames) || shown != [2]string{}):
			t.Errorf("%q: leaves %q, shows %q", frames, left, shown)
		case said == headstart.End:
			want, wantCode, err := readElsewhere(frames)
			if err != nil || shown != want || code != wantCode {
				t.Errorf("%q: shows %q with %d, want %q with %d, %v", frames, shown, code, want, wantCode, err)
			}
		}
	})
}

// readElsewhere reads the frames of a command as others do.
func readElsewhere(frames []byte) (outputs [2]string, code int, err error) {
	reader := wire.NewReader(strings.NewReader(string(frames)))
	for first := true; ; first = false {
		frame, err := reader.Frame()
		switch {
		case err != nil:
			return outputs, 0, err
		case first && frame.Type != wire.FrameStarted:
			return outputs, 0, errors.New("it has not started")
		case frame.Type == wire.FrameStdout || frame.Type == wire.FrameStderr:
			outputs[frame.Type-wire.FrameStdout] += string(frame.Payload)
		case frame.Type == wire.FrameExit:
			exit, err := frame.Exit()
			if err != nil {
				return outputs, 0, err
			}
			if _, err := reader.Frame(); !errors.Is(err, io.EOF) {
				return outputs, 0, errors.New("more comes after the end")
			}
			return outputs, min(max(exit.Code, 0), 255), nil
		case !first:
			return outputs, 0, errors.New("a frame that no command sends")
		}
	}
}

// scratch is a file to write to again and again.
func scratch(f *testing.F) *os.File {
	f.Helper()
	file, err := os.Create(filepath.Join(f.TempDir(), "scratch"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = file.Close() })
	return file
}

// drain empties a file, and returns what was in it.
func drain(t *testing.T, file *os.File) string {
	t.Helper()
	_, err := file.Seek(0, io.SeekStart)
	check(t, err)
	text, err := io.ReadAll(file)
	check(t, errors.Join(err, file.Truncate(0)))
	_, err = file.Seek(0, io.SeekStart)
	check(t, err)
	return string(text)
}
