package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

func TestWorkspaceThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *site) (subject string){
		"a link to a directory": func(s *site) string {
			link := filepath.Join(s.dir, "link")
			if err := os.Symlink(s.agent, link); err != nil {
				s.t.Fatal(err)
			}
			s.set("agents.defaults.workspace", link)
			s.set("agents.defaults.sandbox.workspaceAccess", "rw")
			return link
		},
		"a link to something of the system": func(s *site) string {
			link := filepath.Join(s.dir, "link")
			if err := os.Symlink("/etc", link); err != nil {
				s.t.Fatal(err)
			}
			s.set("agents.defaults.workspace", link)
			s.set("agents.defaults.sandbox.workspaceAccess", "rw")
			return "/etc"
		},
		"missing": func(s *site) string {
			s.set("agents.defaults.workspace", filepath.Join(s.dir, "nowhere"))
			s.set("agents.defaults.sandbox.workspaceAccess", "ro")
			return "nowhere"
		},
		"not writable for its user": func(s *site) string {
			s.set("agents.defaults.sandbox.workspaceAccess", "rw")
			s.set("agents.defaults.sandbox.docker.user", "4321:4321")
			return s.agent
		},
		"a copy that was replaced by a link": func(s *site) string {
			a := s.open()
			p, err := a.Plan(session("bad"))
			if err != nil {
				s.t.Fatal(err)
			}
			s.mkdir(filepath.Dir(p.Layout.SandboxDir))
			if err := os.Symlink("/etc", p.Layout.SandboxDir); err != nil {
				s.t.Fatal(err)
			}
			return p.Layout.SandboxDir
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			subject := spoil(s)
			a := s.open()
			_, err := a.Provide(t.Context(), session("bad"), provide.Options{})
			if _, typed := errors.AsType[*sandbox.ProvisionError](err); !typed && !errors.Is(err, sandbox.ErrDenied) {
				t.Fatalf("%v", err)
			}
			if !strings.Contains(err.Error(), subject) || errhint.Of(err) == "" {
				t.Errorf("%v (hint: %s) does not say which directory, or what to do", err, errhint.Of(err))
			}
			if rows, containers := s.rows(a), s.ours(); len(rows) != 0 || len(containers) != 0 {
				t.Errorf("left: %v, %v", rows, containers)
			}
		})
	}
}

// A workspace that nobody configured is made; a configured one that is missing
// is told, and a private copy works without it.
func TestMissingWorkspace(t *testing.T) {
	t.Parallel()
	t.Run("not configured", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		delete(s.config["agents"].(map[string]any)["defaults"].(map[string]any), "workspace")
		s.set("agents.defaults.sandbox.workspaceAccess", "rw")
		got := s.provide(s.open(), session("new"))
		sh(t, got, "echo kept >file")
		if text, err := os.ReadFile(filepath.Join(s.state, "workspace", "file")); string(text) != "kept\n" {
			t.Errorf("on the host: %q, %v", text, err)
		}
	})
	t.Run("configured", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		s.set("agents.defaults.workspace", filepath.Join(s.dir, "nowhere"))
		got := s.provide(s.open(), session("new"))
		if notices := strings.Join(got.Notices, "\n"); !strings.Contains(notices, filepath.Join(s.dir, "nowhere")) {
			t.Errorf("notices %q", notices)
		}
		sh(t, got, "echo works >file")
	})
}

// Somebody removes the directory that a running sandbox works in. What it wrote
// from then on would be lost, so the next use has a sandbox with the new one.
func TestWorkspaceRemovedUnderARunningSandbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	resident := s.open()
	first := s.provide(resident, session("lost"))
	dir := first.Plan.Layout.SandboxDir
	remove := func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	for who, a := range map[string]*app.App{"the process that has a wire": resident, "another": s.open()} {
		_, err := a.Provide(t.Context(), session("lost"), provide.Options{})
		if !errors.Is(err, sandbox.ErrBusy) || !strings.Contains(errhint.Of(err), "recreate") {
			t.Errorf("%s, while it is in use: %v (hint: %s)", who, err, errhint.Of(err))
		}
	}
	first.Release()
	for who, a := range map[string]*app.App{"the process that has a wire": resident, "another": s.open()} {
		remove()
		got := s.provide(a, session("lost"))
		sh(t, got, "echo here >file")
		got.Release()
		if text, err := os.ReadFile(filepath.Join(dir, "file")); string(text) != "here\n" {
			t.Errorf("%s: on the host: %q, %v", who, text, err)
		}
	}
	if rows, containers := s.rows(resident), s.ours(); len(rows) != 1 || len(containers) != 1 {
		t.Errorf("%d rows, %d containers", len(rows), len(containers))
	}
}

// Session keys come from outside and may be anything.
func TestOddSessionKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.open()
	keys := map[string]string{
		"300 bytes":          strings.Repeat("long-", 60),
		"300 bytes, another": strings.Repeat("long-", 59) + "other",
		"letters of Unicode": "Gruß:日本語:🏝️",
		"control characters": "a\x01b\x1b[31mc\td\r\ne\x7f",
		"a way up":           "../../../etc",
		"a zero byte":        "a\x00b",
		"spaces":             "  a  b  ",
		"shell":              "$(touch x);`id`'\"",
	}
	names := map[string]string{}
	for what, key := range keys {
		t.Run(what, func(t *testing.T) {
			got, err := a.Provide(t.Context(), provide.Subject{SessionKey: "agent:main:" + key}, provide.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer got.Release()
			if len(got.Name) > 63 || !utf8.ValidString(got.Name) || strings.ContainsFunc(got.Name, func(r rune) bool {
				return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r)
			}) {
				t.Errorf("container name %q", got.Name)
			}
			if other := names[got.Name]; other != "" {
				t.Errorf("%q has the name of %q: %s", key, other, got.Name)
			}
			names[got.Name] = key
			if dir := got.Plan.Layout.SandboxDir; filepath.Dir(dir) != filepath.Join(s.state, "sandboxes") {
				t.Errorf("its copy is %s", dir)
			}
			sh(t, got, "echo x >file")
			row, err := a.Manager.Registry.Get(t.Context(), got.Name)
			if err != nil || row.SessionKey != got.Plan.ScopeKey {
				t.Errorf("row %+v, %v", row, err)
			}
			again := s.provide(s.open(), provide.Subject{SessionKey: "agent:main:" + key})
			if again.Created {
				t.Error("not found again")
			}
			again.Release()
		})
	}
	if _, err := a.Provide(t.Context(), provide.Subject{SessionKey: "agent:main:\xff\xfe"}, provide.Options{}); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("bytes that are no text: %v", err)
	}
	if list, total, err := a.List(t.Context(), 0); total != len(keys) || len(list) != len(keys) || err != nil {
		t.Errorf("%d listed of %d, %v", len(list), total, err)
	}
}
