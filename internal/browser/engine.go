package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
)

// ScreenPort is the port of VNC on the sandbox's loopback interface, where the browser has
// a window.
const ScreenPort = 5900

// ErrNoScreen is returned where a window is wanted and the sandbox has no screen for it.
var ErrNoScreen = errhint.With(errors.New("the browser's sandbox has no Xtigervnc, which shows a window"),
	"build its image: `atoll images build browser`; or write sandbox.browser.headless: true")

// The programs of a browser.
const (
	programShell    = "chromium-headless-shell"
	programChromium = "chromium"
	programScreen   = "Xtigervnc"
)

// home is the browser's home, in memory.
const home = "/tmp"

// profileDir holds cookies and storage that end with the browser.
const profileDir = "/tmp/profile"

// search removes what the browser before has left: its profile, or the lock of one that
// is kept, which is $1. It prints the programs that the sandbox has, each with its path.
const search = `if test -n "$1"; then rm -rf "$1"/Singleton*; fi
rm -rf ` + profileDir + ` ` + home + `/.pki /tmp/.X1-lock /tmp/.X11-unix/X1
for n in ` + programShell + ` ` + programChromium + ` ` + programScreen + `; do
if test -x /usr/lib/chromium/$n; then echo $n /usr/lib/chromium/$n; elif p=$(command -v $n); then echo $n $p; fi
done; true`

// maxPrograms bounds what a search prints.
const maxPrograms = 4096

// programs makes the sandbox ready for a new browser and returns the paths of a browser's programs inside, by name.
func programs(ctx context.Context, m *machine.Machine, kept string) (map[string]string, error) {
	var out bytes.Buffer
	if _, err := m.Exec(ctx, &machine.Command{Argv: []string{"/bin/sh", "-c", search, "sh", kept}, Stdout: &out, OutputLimit: maxPrograms}); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(out.String()) {
		if name, path, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(path, "/") {
			found[name] = path
		}
	}
	return found, nil
}

// command returns what is started in the sandbox: the program that the settings ask for,
// on a screen if it has a window.
func command(found map[string]string, s *browserkeys.Browser, kept string) ([]string, error) {
	program := found[programChromium]
	if s.Shell() && found[programShell] != "" {
		program = found[programShell]
	}
	switch {
	case program == "":
		return nil, ErrNoProgram
	case !s.Windowed():
		return append([]string{program}, flags(s, kept)...), nil
	case found[programScreen] == "":
		return nil, ErrNoScreen
	}
	width, height := s.Size()
	return append([]string{"/bin/sh", "-c", onScreen, found[programScreen], fmt.Sprintf("%dx%d", width, height), program}, flags(s, kept)...), nil
}

// onScreen starts a screen, which only the wire can reach, and the browser on it. Its
// arguments are the size, the program and the program's own; $0 is the screen's program.
const onScreen = `size=$1; shift
"$0" :1 -localhost -SecurityTypes None -AlwaysShared -depth 24 -geometry "$size" -rfbport 5900 >/tmp/screen.log 2>&1 &
n=0
until test -S /tmp/.X11-unix/X1; do
	n=$((n+1))
	if test $n -gt 200; then echo "the screen does not start: $(tail -n 1 /tmp/screen.log)" >&2; exit 1; fi
	sleep 0.05
done
export DISPLAY=:1
if command -v openbox >/dev/null; then openbox & fi
exec "$@"`

// Windowed reports whether the browser has a window, whose screen is on ScreenPort.
func (b *Browser) Windowed() bool { return b.windowed }
