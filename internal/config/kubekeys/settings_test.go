package kubekeys_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/kubekeys"
)

// settings reads kubernetes of a file.
func settings(t *testing.T, text string) (kubekeys.Settings, kubekeys.Origins) {
	t.Helper()
	c, err := config.Parse("atoll.json5", []byte(text), config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Kubernetes().Settings()
}

func TestSettings(t *testing.T) {
	s, from := settings(t, `{kubernetes: {context: "work", nodeSelector: {"atoll.dev/sandbox": "true"}, tolerations: [{key: "atoll.dev/sandbox", operator: "Exists"}],
		trustNetworkPolicy: true, startTimeoutSec: 60}}`)
	if s.Context != "work" || s.Namespace != "atoll-sandboxes" || s.NodeSelector["atoll.dev/sandbox"] != "true" || s.Tolerations[0].Operator != "Exists" || !s.TrustNetworkPolicy || s.StartTimeoutSec != 60 {
		t.Errorf("%+v", s)
	}
	for key, want := range map[string]string{"context": "kubernetes.context", "namespace": "default", "startTimeoutSec": "kubernetes.startTimeoutSec", "nodeSelector": "kubernetes.nodeSelector"} {
		if from[key] != want {
			t.Errorf("%s comes from %q, want %q", key, from[key], want)
		}
	}
}

func TestWorkspaceVolume(t *testing.T) {
	for text, want := range map[string]kubekeys.Volume{
		`{kubernetes: {workspaceVolume: {}}}`:                                           {Size: "10Gi"},
		`{kubernetes: {workspaceSize: "2Gi", workspaceVolume: {storageClass: "fast"}}}`: {Size: "2Gi", StorageClass: "fast"},
		`{kubernetes: {workspaceVolume: {size: "1Gi"}}}`:                                {Size: "1Gi"},
		`{kubernetes: {workspaceVolume: {size: "0.5Ti"}}}`:                              {Size: "0.5Ti"},
	} {
		if s, from := settings(t, text); s.WorkspaceVolume == nil || *s.WorkspaceVolume != want || from["workspaceVolume"] != "kubernetes.workspaceVolume" {
			t.Errorf("%s: %+v, %v", text, s.WorkspaceVolume, from)
		}
	}
	if s, _ := settings(t, `{}`); s.WorkspaceVolume != nil || s.TerminationGraceSec != 60 {
		t.Errorf("%+v", s)
	}
}

func TestProblems(t *testing.T) {
	for _, text := range []string{
		`{kubernetes: {startTimeoutSec: 1}}`, `{kubernetes: {terminationGraceSec: 1}}`, `{kubernetes: {workspaceVolume: {path: "/"}}}`, `{kubernetes: {workspaceSize: "lots"}}`, `{kubernetes: {workspaceVolume: {size: "-1Gi"}}}`, `{kubernetes: {workspaceVolume: {size: "0"}}}`, `{kubernetes: {imagePullPolicy: "Sometimes"}}`, `{kubernetes: {namespace: "a b"}}`,
		`{kubernetes: {tolerations: [{operator: "Near"}]}}`, `{kubernetes: {podPidsLimit: 0}}`, `{kubernetes: {hostNetwork: true}}`,
	} {
		if _, err := config.Parse("atoll.json5", []byte(text), config.Environment{}); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}
