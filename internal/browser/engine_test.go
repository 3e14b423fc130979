package browser

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config/browserkeys"
)

// TestCommand: the settings choose the program, its window and its flags.
func TestCommand(t *testing.T) {
	all := map[string]string{programShell: "/shell", programChromium: "/chromium", programScreen: "/screen"}
	for _, c := range []struct {
		name  string
		found map[string]string
		set   func(*browserkeys.Browser)
		want  string // the program, or "" with err
		err   error
		flag  string
	}{
		{"by default", all, func(*browserkeys.Browser) {}, "/shell", nil, "--window-size=1280,800"},
		{"only Chromium is there", map[string]string{programChromium: "/chromium"}, func(*browserkeys.Browser) {}, "/chromium", nil, "--headless"},
		{"Chromium is asked for", all, func(s *browserkeys.Browser) { s.Engine = browserkeys.EngineChromium }, "/chromium", nil, "--headless"},
		{"a window", all, func(s *browserkeys.Browser) { s.Headless, s.Viewport = false, "800x600" }, "/bin/sh", nil, "800x600"},
		{"a window without a screen", map[string]string{programChromium: "/c"}, func(s *browserkeys.Browser) { s.Headless = false }, "", ErrNoScreen, ""},
		{"nothing is there", nil, func(*browserkeys.Browser) {}, "", ErrNoProgram, ""},
		{"no sandbox", all, func(s *browserkeys.Browser) { s.NoSandbox = true }, "/shell", nil, "--no-sandbox"},
		{"certificates", all, func(s *browserkeys.Browser) { s.IgnoreCertificates = true }, "/shell", nil, "--ignore-certificate-errors"},
	} {
		s := browserkeys.Default()
		c.set(&s)
		argv, err := command(c.found, &s, "")
		if !errors.Is(err, c.err) || err == nil && (argv[0] != c.want || !slices.Contains(argv, c.flag)) {
			t.Errorf("%s: %q, %v", c.name, argv, err)
		}
		if s.Windowed() == slices.Contains(argv, "--headless") && err == nil {
			t.Errorf("%s: window and --headless: %q", c.name, argv)
		}
		if has := strings.Contains(strings.Join(argv, " "), "--no-sandbox"); has != s.NoSandbox {
			t.Errorf("%s: --no-sandbox: %v", c.name, has)
		}
	}
}
