package kube

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// TestTokenIsReplaced: a token in a file that is replaced before it ends, as the kubelet does
// for the gateway's pod, is read again without a restart: also wires are opened with it.
func TestTokenIsReplaced(t *testing.T) {
	c, s := clustertest.Alone(t, 2), clusterSettings(t) // it waits for a minute: with the tests of two nodes
	kubectl := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(c.Kubectl(t, "", append([]string{"-n", s.Namespace}, args...)...))
	}
	kubectl("create", "serviceaccount", "gateway")
	kubectl("create", "rolebinding", "gateway", "--clusterrole=cluster-admin", "--serviceaccount="+s.Namespace+":gateway")
	token := func(bound string) string {
		kubectl("create", "secret", "generic", bound)
		return kubectl("create", "token", "gateway", "--duration=10m", "--bound-object-kind=Secret", "--bound-object-name="+bound)
	}
	dir, server := t.TempDir(), kubectl("config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.server}")
	authority := kubectl("config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}")
	file := filepath.Join(dir, "token")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, token("first"))
	s.Kubeconfig = filepath.Join(dir, "kubeconfig")
	write(s.Kubeconfig, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"u","user":{"tokenFile":%q}}]}`, server, authority, file))
	r := testRuntime(t, s)
	inst, m := started(t, r, smallSpec("rotated"))
	answers(t, m, time.Minute)
	write(file, token("second"))
	kubectl("delete", "secret", "first") // ends the first token
	refused := awaitToken(t, r)
	r.dropSession(string(inst.currentPod().UID))
	answers(t, m, time.Minute)
	t.Logf("refused %d times meanwhile", refused)
}

// awaitToken calls the API server until it has refused a token and takes the next one, and
// returns how often it refused. It may accept one that has ended for some seconds.
func awaitToken(t *testing.T, r *Runtime) (refused int) {
	t.Helper()
	for deadline, good := time.Now().Add(2*time.Minute), 0; good < 150; time.Sleep(pollInterval) {
		_, err := r.List(t.Context())
		switch {
		case err == nil && refused > 0:
			return refused
		case err == nil:
			good++ // the file was read again before the first token was refused
		case !errors.Is(err, sandbox.ErrUnavailable) || time.Now().After(deadline):
			t.Fatal(err)
		default:
			refused++
		}
	}
	return refused
}
