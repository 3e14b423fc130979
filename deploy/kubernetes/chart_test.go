package kubernetes_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

const chart = "../helm/atoll"

// The chart writes what is in this folder, with and without a Service or agent-sandbox.
func TestChartEqualsManifests(t *testing.T) {
	c := clustertest.Shared(t)
	for dir, value := range map[string]string{".": "service.enabled=false", "service": "service.enabled=true", "agent-sandbox": "agentSandbox.enabled=true"} {
		t.Run(value, func(t *testing.T) {
			rendered, said, err := helm(t, "template", "atoll", chart, "--kube-version", "1.34.4", "--set", value)
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			compare(t, parse(t, c, c.Kubectl(t, "", "kustomize", dir)), parse(t, c, rendered))
		})
	}
}

func compare(t *testing.T, manifests, rendered []object) {
	t.Helper()
	if len(manifests) != len(rendered) || len(manifests) < 15 {
		t.Errorf("%d objects here, %d of the chart", len(manifests), len(rendered))
	}
	of := map[string]object{}
	for _, o := range rendered {
		of[o.String()] = o
	}
	for _, o := range manifests {
		if want, got := indented(t, o), indented(t, of[o.String()]); want != got {
			t.Errorf("%s: here\n%s\nthe chart's\n%s", o, want, got)
		}
	}
}

func TestChartRefusesValues(t *testing.T) {
	clustertest.Shared(t) // helm takes minutes to build: where the cluster is, so is what it is built from
	if out, said, err := helm(t, "lint", "--strict", chart); err != nil {
		t.Errorf("%v\n%s%s", err, out, said)
	}
	for _, value := range []string{
		"image.pullPolicy=Sometimes", "namespaces.sandboxes=Not_A_Name", "admission.registries=null", "admission.creators={a\\,b}", "replicas=2", "config.gateway.port=1",
		"service.port=0", "quota.pods=many", "seccomp.directory=relative", "kubernetes.namespace=default", "kubernetes.provider=agent-sandbox", "agentSandbox.account=somebody",
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			if _, said, err := helm(t, "template", "atoll", chart, "--kube-version", "1.34.4", "--set", value); err == nil || !strings.Contains(said, "values don't meet the specifications") {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}
