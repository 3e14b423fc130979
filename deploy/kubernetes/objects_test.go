package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// object is one object of Kubernetes.
type object map[string]any

// metadata returns a text of an object's metadata.
func (o object) metadata(key string) string {
	text, _ := o["metadata"].(map[string]any)[key].(string)
	return text
}

func (o object) String() string {
	return fmt.Sprintf("%s %s/%s", o["kind"], o.metadata("namespace"), o.metadata("name"))
}

// parse reads manifests with the program that will apply them.
func parse(t *testing.T, c *clustertest.Cluster, manifests string) []object {
	t.Helper()
	out := c.Kubectl(t, manifests, "create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-")
	objects := parseStream(t, out)
	slices.SortFunc(objects, func(a, b object) int { return strings.Compare(a.String(), b.String()) })
	return objects
}

// helm runs the program of that name.
func helm(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "-modfile=../../tools/helm/go.mod", "helm"}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "HELM_CACHE_HOME="+t.TempDir())
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	return out.String(), said.String(), err
}

func indented(t *testing.T, o object) string {
	t.Helper()
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
