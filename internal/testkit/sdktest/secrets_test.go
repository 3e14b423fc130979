package sdktest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// refusedKey is one that the upstream does not know, and shows in its answer.
const refusedKey = "sk-refused-0123456789-of-nobody"

// disguises are the forms that a key could be kept in.
func disguises() (all []string) {
	for _, key := range []string{masterKey, refusedKey} {
		all = append(all, key, base64.StdEncoding.EncodeToString([]byte(key))[:len(key)], hex.EncodeToString([]byte(key)))
	}
	return all
}

// lookInside searches everything that a process in the sandbox can read: all
// files of all mounts that were changed since the keys exist, arguments,
// environments and memory maps of all processes. What it looks for comes as its
// input, so that the search does not find itself.
const lookInside = `
cat >/tmp/patterns
find / \( -path /proc -o -path /sys -o -path /tmp/patterns \) -prune -o -type f -newerct "@$1" -exec grep -lF -f /tmp/patterns {} + 2>/dev/null
for p in /proc/[0-9]*; do
  for f in environ cmdline maps mountinfo status; do
    if grep -qF -f /tmp/patterns $p/$f 2>/dev/null; then echo $p/$f; fi
  done
done
rm /tmp/patterns
echo searched
`

// TestInvariant_SECRETS_HOST_ONLY has programs in a sandbox without a network call
// models, in vain too, and looks for the keys everywhere but in the process that
// holds them: in all that the sandbox can read, in what it was answered, in other
// processes, in the engine's description of the container, in the log, and in
// every file of the state: database, journal, audit log, transcripts. It was seen
// to fail with a key in place of noKey in ModelEnv.
func TestInvariant_SECRETS_HOST_ONLY(t *testing.T) {
	for _, backend := range []string{"linux", "docker"} {
		t.Run(backend, func(t *testing.T) {
			log := &logged{}
			all := models()
			all["refused"] = litellmtest.Model{}
			d := newDesk(t, fixtureOptions{
				backend: backend, models: all, log: log, llm: map[string]any{"prices": object{"refused": object{"input": 1, "output": 1}}},
				provider: func(url string) object {
					return object{"kind": "openai", "url": url, "models": []any{"refused"}, "keys": []any{object{"env": "REFUSED_KEY"}}}
				},
				env: map[string]string{"REFUSED_KEY": refusedKey},
			})
			d.callAndSearch()
			if backend == "docker" {
				d.searchEngine()
			}
			_ = d.models.Close()
			d.app.Close() // everything is written now
			d.searchState()
			for _, form := range disguises() {
				if strings.Contains(log.text.String(), form) {
					t.Errorf("%s was logged", form)
				}
			}
		})
	}
}

// callAndSearch calls models from inside and searches, inside and among the
// processes of the host, while the keys are in use.
func (d *fixture) callAndSearch() {
	d.Helper()
	g := d.grant("run-1", 0, "words", "refused", "unsteady")
	defer g.Close()
	for body, want := range map[string]string{
		`{"model":"words","stream":true,"messages":[]}`: "[DONE]",
		`{"model":"unsteady","messages":[]}`:            "slow down",
		`{"model":"refused","messages":[]}`:             "does not take the proxy's key",
		`{"model":"forbidden","messages":[]}`:           "may not be called here",
	} {
		out := d.exec(g, nil, map[string]string{}, "/bin/sh", "-c", curl+" -i", "sh", body)
		if !strings.Contains(out, want) {
			d.Errorf("%s: no %q in\n%s", body, want, out)
		}
		d.none("the answer to "+body, []byte(out))
	}
	patterns, began := strings.Join(disguises(), "\n")+"\n", strconv.FormatInt(d.began.Unix()-1, 10)
	if found := strings.TrimSpace(d.exec(g, []byte(patterns), map[string]string{}, "/bin/sh", "-c", lookInside, "sh", began)); found != "searched" {
		d.Errorf("inside, a key is in:\n%s", found)
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	others, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range slices.Concat(files, others) {
		if text, err := os.ReadFile(path); err == nil {
			d.none(path, text)
		}
	}
}

// none fails if a text holds a key in any form.
func (d *fixture) none(what string, text []byte) {
	d.Helper()
	for _, form := range disguises() {
		if bytes.Contains(text, []byte(form)) {
			d.Errorf("%s holds %s", what, form)
		}
	}
}

// searchEngine looks at what the engine tells of the container.
func (d *fixture) searchEngine() {
	d.Helper()
	out, err := exec.CommandContext(d.Context(), "docker", "-H", enginetest.Docker(d.T), "inspect", d.in.Name).Output()
	if err != nil || !bytes.Contains(out, []byte(d.in.Name)) {
		d.Errorf("inspect: %v: %s", err, out)
	}
	d.none("the engine's description", out)
}

// searchState looks into every file of the installation.
func (d *fixture) searchState() {
	d.Helper()
	files := 0
	err := filepath.WalkDir(d.state, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if info, _ := entry.Info(); errors.Is(err, fs.ErrPermission) && info != nil && info.Mode().Perm()&0o444 == 0 {
			return nil // the guest's program, which may only be executed
		}
		files++
		d.none(path, content)
		return err
	})
	if err != nil || files < 4 {
		d.Errorf("%d files were searched: %v", files, err)
	}
}
