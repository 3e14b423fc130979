package docker

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// host is a running container that is not ours, with a root that cannot be
// written and a workspace in memory, where the engine cannot copy files to.
func host(t *testing.T, l *lab) string {
	t.Helper()
	id := outsider(t, l, client.ContainerCreateOptions{
		Name: "atoll-test-" + strings.ToLower(rand.Text()[:12]), Config: &container.Config{},
		HostConfig: &container.HostConfig{ReadonlyRootfs: true, NetworkMode: "none", Tmpfs: map[string]string{"/tmp": ""}},
	})
	if _, err := ask(t.Context(), l.engine, func(c *client.Client) (client.ContainerStartResult, error) {
		return c.ContainerStart(t.Context(), id, client.ContainerStartOptions{})
	}); err != nil {
		t.Fatal(err)
	}
	return id
}

// A guest that cannot be copied in leaves nothing in a container that is not
// ours.
//
// Seen to fail without Visit.clear.
func TestVisitThatFailsLeavesNothing(t *testing.T) {
	l := newLab(t, enginetest.Docker(t), Docker)
	id := host(t, l)
	if v, err := l.Visit(t.Context(), id, "/tmp"); err == nil || !strings.Contains(err.Error(), "bring the guest in") {
		t.Fatalf("%+v, %v", v, err)
	}
	conn, err := l.execIn(t.Context(), id, []string{"/bin/sh", "-c", "ls -A /tmp; echo listed"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if left, err := readUntil(t.Context(), conn); err != nil || left != "listed\n" {
		t.Errorf("left: %q, %v", left, err)
	}
}

// Nothing that a container says is taken for a directory of ours.
func TestVisitBelievesNoPath(t *testing.T) {
	for name, ok := range map[string]bool{
		".atoll-Abc123": true, ".atoll-abc12": false, ".atoll-abc/..": false, "atoll-abc123": false, ".atoll-abc123\n": false, "": false,
	} {
		if freshName.MatchString(name) != ok {
			t.Errorf("%q: %v", name, !ok)
		}
	}
}
