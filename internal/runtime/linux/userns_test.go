package linux

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// settings is a made-up /proc/sys.
func settings(t *testing.T, values map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range values {
		path := filepath.Join(dir, strings.ReplaceAll(name, ".", "/"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRestrictions(t *testing.T) {
	const most, clone = "user.max_user_namespaces", "kernel.unprivileged_userns_clone"
	for _, tt := range []struct {
		name       string
		values     map[string]string
		user, root string
	}{
		{"an ordinary host", map[string]string{most: "96343"}, "", ""},
		{"everything allowed", map[string]string{most: "1", clone: "1", appArmorSetting: "0"}, "", ""},
		{"none at all", map[string]string{most: "0"}, most, most},
		{"an old Debian", map[string]string{most: "96343", clone: "0"}, clone, ""},
		{"a recent Ubuntu", map[string]string{most: "96343", clone: "1", appArmorSetting: "1"}, appArmorSetting, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := settings(t, tt.values)
			if got := restrictionIn(dir, false).Name; got != tt.user {
				t.Errorf("a user is kept by %q, want %q", got, tt.user)
			}
			if got := restrictionIn(dir, true).Name; got != tt.root {
				t.Errorf("root is kept by %q, want %q", got, tt.root)
			}
		})
	}
}

// The scripts are run for real, but for the last step, by a shell whose files
// are the test's.
func TestFixes(t *testing.T) {
	dir := t.TempDir()
	run := func(script string) string {
		t.Helper()
		script = strings.NewReplacer("/etc/", dir+"/", "sysctl -w", "echo set", "apparmor_parser -r", "echo load").Replace(script)
		out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, sub := range []string{"sysctl.d", "apparmor.d"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := run(UsernsRestriction{"user.max_user_namespaces", "15000"}.Fix("/usr/bin/atoll")); got != "set user.max_user_namespaces=15000" {
		t.Errorf("the setting: %q", got)
	}
	if kept, err := os.ReadFile(dir + "/sysctl.d/60-atoll.conf"); string(kept) != "user.max_user_namespaces=15000\n" {
		t.Errorf("kept %q, %v", kept, err)
	}
	odd := "/home/some one's/atoll"
	if got := run(UsernsRestriction{appArmorSetting, "0"}.Fix(odd)); got != "load "+dir+"/apparmor.d/atoll" {
		t.Errorf("the profile: %q", got)
	}
	if kept, err := os.ReadFile(dir + "/apparmor.d/atoll"); !strings.Contains(string(kept), `profile atoll "`+odd+`" flags=(unconfined) {`+"\n  userns,\n}") {
		t.Errorf("kept %q, %v", kept, err)
	}
	if got := (UsernsRestriction{}).Fix(odd); got != "" {
		t.Errorf("nothing to fix: %q", got)
	}
}
