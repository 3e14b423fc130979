package cli_test

import (
	"os"
	"strings"
	"testing"
)

// TestExplainCluster: the rings of pods are named, without a cluster to ask.
func TestExplainCluster(t *testing.T) {
	for settings, want := range map[string][]string{
		`{}`:                          {"policy (probed): a NetworkPolicy", "nothing is made until kubernetes.seccompProfile", "default of kubernetes.podPidsLimit"},
		`{"trustNetworkPolicy":true}`: {"policy (probed): a NetworkPolicy"},
		`{"seccompProfile":"atoll/sandbox.json","podPidsLimit":512}`: {"own: the guest leaves the pod's network", "at most 512, by the kubelets"},
	} {
		p := newPlace(t)
		text := `{"agents":{"defaults":{"sandbox":{"backend":"kubernetes"}}},"kubernetes":` + settings + `}`
		if err := os.WriteFile(p.config(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, said, _ := p.atoll("sandbox", "explain")
		for _, words := range want {
			if !strings.Contains(out, words) {
				t.Errorf("%s: %q is missing in\n%s%s", settings, words, out, said)
			}
		}
		if strings.Contains(settings, "trust") && strings.Contains(out, "nothing is made") {
			t.Errorf("%s: %s", settings, out)
		}
	}
}
