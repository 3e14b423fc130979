package kubernetes_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// The configuration that is applied is one that the gateway takes, and names what is
// applied beside it.
func TestConfiguration(t *testing.T) {
	c, found := clustertest.Shared(t), 0
	for _, dir := range []string{".", "service", "agent-sandbox"} {
		for _, o := range parse(t, c, c.Kubectl(t, "", "kustomize", dir)) {
			if o.String() != "ConfigMap atoll/atoll-gateway" {
				continue
			}
			text, _ := at(o, "data")["atoll.json5"].(string)
			parsed, err := config.Parse("atoll.json5", []byte(text), config.Environment{})
			if err != nil {
				t.Fatalf("%s: %v", dir, err)
			}
			if s, _ := parsed.Kubernetes().Settings(); s.Namespace != "atoll-sandboxes" || s.ServiceAccount != "atoll-sandbox" || s.PriorityClass != "atoll-sandbox" {
				t.Errorf("%s: %+v", dir, s)
			} else if (s.Provider == kubekeys.ProviderAgentSandbox) != (dir == "agent-sandbox") {
				t.Errorf("%s: provider %s", dir, s.Provider)
			}
			found++
		}
	}
	if found != 3 {
		t.Errorf("%d configurations are applied", found)
	}
}
