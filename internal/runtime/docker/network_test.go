package docker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// ownNetwork is a network that is removed after the test.
func ownNetwork(t *testing.T, l *lab) string {
	t.Helper()
	name := l.spec().Name
	_, err := ask(t.Context(), l.engine, func(c *client.Client) (client.NetworkCreateResult, error) {
		return c.NetworkCreate(t.Context(), name, client.NetworkCreateOptions{Driver: "bridge"})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		l.clear(t)
		_, err := ask(ctx, l.engine, func(c *client.Client) (client.NetworkRemoveResult, error) {
			return c.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
		})
		if err != nil {
			t.Errorf("network %s is left: %v", name, err)
		}
	})
	return name
}

func TestNamedAndJoinedNetworks(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		network := ownNetwork(t, l)
		named := func(s *sandbox.Spec) { s.Network = network }
		if gaps := l.Check(t.Context(), l.spec(named)); len(gaps) != 0 {
			t.Errorf("gaps: %+v", gaps)
		}
		first := l.start(t, named)
		const address = "ip -4 -o addr show eth0 | tr -s ' ' | cut -d' ' -f4"
		theirs := sh(t, first, address)
		if !strings.Contains(theirs, "/") {
			t.Fatalf("address %q", theirs)
		}
		joining := func(s *sandbox.Spec) { s.Network = containerNetwork + first.name }
		if gaps := l.Check(t.Context(), l.spec(joining)); len(gaps) != 0 {
			t.Errorf("gaps: %+v", gaps)
		}
		second := l.start(t, joining)
		if ours := sh(t, second, address); ours != theirs {
			t.Errorf("joined network has %q, the container's is %q", ours, theirs)
		}
		if err := second.Remove(t.Context()); err != nil { // Podman wants it gone first
			t.Error(err)
		}
	})
}

func TestMissingNetworkLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		i, err := l.Create(t.Context(), l.spec(func(s *sandbox.Spec) { s.Network = "atoll-test-no-such" }))
		if err == nil {
			err = i.Start(t.Context()) // Docker looks only now
			if removal := i.Remove(t.Context()); removal != nil {
				t.Error(removal)
			}
		}
		if err == nil || errors.Is(err, sandbox.ErrNoImage) || !strings.Contains(err.Error(), "atoll-test-no-such") {
			t.Errorf("got %v", err)
		}
		if left := mustList(t, l); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}
