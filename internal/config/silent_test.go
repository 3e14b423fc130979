package config_test

import "testing"

func TestIsSilent(t *testing.T) {
	for text, want := range map[string]bool{
		"{}":                                   true,
		`{agents: {defaults: {model: "a/b"}}}`: true,
		`{agents: {defaults: {sandbox: {}}}}`:  true,
		`{agents: {defaults: {sandbox: {sync: {mode: "auto"}, overlay: {kind: "copy"}}}}}`: true,
		`{agents: {list: [{id: "dir", sandbox: {workspaceAccess: "ro"}}]}}`:                true,
		`{agents: {list: [{id: "main"}]}}`:                                                 false,
		`{agents: {defaults: {workspace: "~/x"}}}`:                                         false,
		`{agents: {defaults: {sandbox: {mode: "all"}}}}`:                                   false,
		`{agents: {defaults: {sandbox: {workspaceAccess: "none"}}}}`:                       false,
		`{agents: {defaults: {sandbox: {docker: {memory: "1g"}}}}}`:                        false,
	} {
		if got := parsed(t, t.TempDir(), text, nil).IsSilent(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
