package kubernetes_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// The configuration that is applied is one that the gateway takes, and names what is
// applied beside it.
func TestConfiguration(t *testing.T) {
	c, found := clustertest.Shared(t), 0
	for _, dir := range []string{".", "service"} {
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
			}
			found++
		}
	}
	if found != 2 {
		t.Errorf("%d configurations are applied", found)
	}
}
