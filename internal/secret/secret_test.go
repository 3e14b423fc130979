package secret_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/secret"
)

const key = "sk-very-secret-0123456789"

func TestAValuePrintsAsRedactedEverywhere(t *testing.T) {
	v := secret.New(key)
	type holder struct {
		Key  secret.Value
		Ptr  *secret.Value
		List []secret.Value
		Map  map[string]secret.Value
		Any  any
		priv secret.Value
	}
	h := holder{v, &v, []secret.Value{v}, map[string]secret.Value{"k": v}, v, v}
	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%10.3s", "%T %v"} {
		texts = append(texts, fmt.Sprintf(verb, v), fmt.Sprintf(verb, &v), fmt.Sprintf(verb, h), fmt.Sprintf(verb, &h))
	}
	old, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	current, err := jsonv2.Marshal(struct{ K secret.Value }{v})
	if err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&logs, nil), slog.NewJSONHandler(&logs, nil)} {
		slog.New(handler).Info("x", "key", v, "holder", h, "ptr", &v, "list", []secret.Value{v})
	}
	texts = append(texts, string(old), string(current), logs.String(), fmt.Errorf("failed: %v", v).Error())
	for _, text := range texts {
		for _, form := range []string{"very", "736b2d76", "115 107"} { // plain, hex, bytes
			if strings.Contains(strings.ToLower(text), form) {
				t.Errorf("shown: %s", text)
			}
		}
	}
	if v.Reveal() != key || string(v.Append([]byte("Bearer "))) != "Bearer "+key {
		t.Error("it is not what was put in")
	}
	if got := v.Scrub("bad key " + key + "!"); strings.Contains(got, "very") {
		t.Error(got)
	}
	copied := v
	v.Wipe()
	if !copied.IsEmpty() || copied.Reveal() != "" {
		t.Error("a copy survived the wiping")
	}
}

func TestSources(t *testing.T) {
	dir := t.TempDir()
	private := write(t, dir, "private", key+"\n", 0o600)
	identity, sealed, armoured := encrypted(t, dir)
	getenv := func(name string) string { return map[string]string{"K": key, "LINES": "a\nb"}[name] }
	for name, c := range map[string]struct {
		source secret.Source
		err    string // "" is success
	}{
		"env":              {secret.Env{Variable: "K", Getenv: getenv}, ""},
		"env missing":      {secret.Env{Variable: "NONE", Getenv: getenv}, "NONE is not set"},
		"env of two lines": {secret.Env{Variable: "LINES", Getenv: getenv}, "no key has"},
		"literal":          {secret.Literal{Value: secret.New(key)}, ""},
		"file":             {secret.File{Path: private}, ""},
		"file missing":     {secret.File{Path: filepath.Join(dir, "none")}, "no such file"},
		"file for all":     {secret.File{Path: write(t, dir, "open", key, 0o644)}, "mode 0644 lets others"},
		"file for group":   {secret.File{Path: write(t, dir, "group", key, 0o640)}, "mode 0640 lets others"},
		"file empty":       {secret.File{Path: write(t, dir, "empty", " \n", 0o600)}, "empty"},
		"file large":       {secret.File{Path: write(t, dir, "large", strings.Repeat("a", 20000), 0o600)}, "more than"},
		"directory":        {secret.File{Path: dir}, "not a regular file"},
		"header in it":     {secret.File{Path: write(t, dir, "header", key+"\r\nx-evil: 1", 0o600)}, "no key has"},
		"command":          {secret.Command{Argv: []string{"printf", "%s", key}}, ""},
		"command fails":    {secret.Command{Argv: []string{"sh", "-c", "echo " + key + " >&2; exit 3"}}, "exit status 3"},
		"command missing":  {secret.Command{Argv: []string{filepath.Join(dir, "nothing")}}, "no such file"},
		"command is slow":  {secret.Command{Argv: []string{"sh", "-c", "sleep 600 & sleep 600"}, Timeout: 300 * time.Millisecond}, "no answer within"},
		"command floods":   {secret.Command{Argv: []string{"sh", "-c", "yes " + key}}, "more than"},
		"no command":       {secret.Command{}, "no command"},
		"age":              {secret.Age{Path: sealed, Identity: identity}, ""},
		"age armoured":     {secret.Age{Path: armoured, Identity: identity}, ""},
		"age without":      {secret.Age{Path: sealed, Identity: private}, "holds no age identity"},
		"age of another":   {secret.Age{Path: sealed, Identity: otherIdentity(t, dir)}, "cannot be decrypted"},
		"age plain":        {secret.Age{Path: private, Identity: identity}, "cannot be decrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := c.source.Read(t.Context())
			switch {
			case c.err == "" && (err != nil || v.Reveal() != key):
				t.Errorf("%v", err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%v, want %q", err, c.err)
			case err != nil && strings.Contains(err.Error(), "very"):
				t.Errorf("the message shows the key: %v", err)
			}
		})
	}
}

func write(t *testing.T, dir, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func encrypted(t *testing.T, dir string) (identity, sealed, armoured string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var plain, text bytes.Buffer
	seal := func(to *bytes.Buffer, arm bool) {
		var w interface {
			Write([]byte) (int, error)
			Close() error
		}
		if arm {
			w = armor.NewWriter(to)
		}
		target := interface{ Write([]byte) (int, error) }(to)
		if w != nil {
			target = w
		}
		body, err := age.Encrypt(target, id.Recipient())
		if err != nil {
			t.Fatal(err)
		}
		_, err = body.Write([]byte(key + "\n"))
		if err = errors.Join(err, body.Close()); err != nil {
			t.Fatal(err)
		}
		if w != nil {
			_ = w.Close()
		}
	}
	seal(&plain, false)
	seal(&text, true)
	return write(t, dir, "identity", "# comment\n"+id.String()+"\n", 0o600), write(t, dir, "key.age", plain.String(), 0o644), write(t, dir, "key.asc", text.String(), 0o644)
}

func otherIdentity(t *testing.T, dir string) string {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return write(t, dir, "other", id.String(), 0o600)
}

func TestAFileOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		// Root's files are trusted, and no other user's file is at hand that
		// only its owner can read and we can open: the check is made as root.
		if _, err := (secret.File{Path: "/etc/shadow"}).Read(t.Context()); err == nil {
			t.Error("a file that is not ours was read")
		}
		return
	}
	path := write(t, t.TempDir(), "theirs", key, 0o600)
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, err := (secret.File{Path: path}).Read(t.Context()); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("%v", err)
	}
}

// changing is a source whose key changes.
type changing struct {
	name string
	key  *string
}

func (c changing) Name() string { return c.name }

func (c changing) Read(context.Context) (secret.Value, error) {
	if *c.key == "" {
		return secret.Value{}, errors.New("gone")
	}
	return secret.New(*c.key), nil
}

func TestPoolFailsOverAndRecovers(t *testing.T) {
	first, second := "one", "two"
	now := time.Unix(1000, 0)
	p, err := secret.NewPool(t.Context(), secret.PoolOptions{Now: func() time.Time { return now }}, changing{"a", &first}, changing{"b", &second})
	if err != nil {
		t.Fatal(err)
	}
	pick := func(want string) secret.Key {
		t.Helper()
		k, err := p.Pick()
		if err != nil || k.Value.Reveal() != want {
			t.Fatalf("%q, %v; want %q", k.Value.Reveal(), err, want)
		}
		return k
	}
	if !pick("one").Failed(429) {
		t.Error("no other key after 429")
	}
	if pick("two").Failed(401) {
		t.Error("a third key?")
	}
	now = now.Add(time.Second)
	pick("one").Failed(403) // whose rest would have ended first, and goes last now
	pick("two").Worked()
	pick("two") // it works after all
	now = now.Add(secret.DefaultRefusedCooldown)
	pick("one").Failed(401)
	second = "new"
	if err := p.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	pick("new") // a changed key is used
	second = ""
	if err := p.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	pick("new") // and kept when its source fails.
	first = "newer"
	if err := p.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	pick("newer") // A changed key has nothing to rest from.
	if got := len(p.Values()); got != 2 {
		t.Errorf("%d values", got)
	}
}

// An upstream that fails is left alone, longer and longer, and tried by one
// request at a time; one answer opens it for all.
func TestPoolLeavesAFailingUpstreamAlone(t *testing.T) {
	key, now := "one", time.Unix(1000, 0)
	p, err := secret.NewPool(t.Context(), secret.PoolOptions{Now: func() time.Time { return now }}, changing{"a", &key})
	if err != nil {
		t.Fatal(err)
	}
	open := func(want bool) secret.Key {
		t.Helper()
		k, err := p.Pick()
		if want == (err != nil) || err != nil && !errors.Is(err, secret.ErrFailing) {
			t.Fatalf("open %v, %v", want, err)
		}
		return k
	}
	k := open(true)
	for _, status := range []int{502, 0, 500, 529, 429, 500, 500, 500, 500} { // what is answered begins the count again
		k.Failed(status)
	}
	open(true)
	k.Failed(503)
	for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		now = now.Add(pause - 1)
		open(false)
		now = now.Add(1)
		k = open(true)
		open(false) // one at a time
		k.Failed(502)
	}
	now = now.Add(30 * time.Second)
	open(true)                      // this one is not heard of,
	now = now.Add(10 * time.Second) // so another is tried
	open(true).Worked()
	open(true)
	open(true)
}

func TestAPoolNeedsAKey(t *testing.T) {
	none := ""
	if _, err := secret.NewPool(t.Context(), secret.PoolOptions{}, changing{"a", &none}); err == nil {
		t.Error("accepted")
	}
}

// A key that was changed where it is kept is used soon after the old one was
// refused.
func TestPoolFollowsAChangedKey(t *testing.T) {
	path := write(t, t.TempDir(), "key", "old", 0o600)
	p, err := secret.NewPool(t.Context(), secret.PoolOptions{Reload: time.Hour}, secret.File{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Refresh(ctx, func(err error) { t.Error(err) })
	}()
	old, err := p.Pick()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	old.Failed(401)
	var got secret.Key
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if got, err = p.Pick(); err == nil && got.Value.Reveal() == "new" {
			break
		}
	}
	if err != nil || got.Value.Reveal() != "new" {
		t.Errorf("%q, %v", got.Value.Reveal(), err)
	}
	cancel()
	<-ended
}
