package docker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// stranger makes a container that is not ours, as OpenClaw would.
func stranger(t *testing.T, l *lab, name string, labels map[string]string) string {
	t.Helper()
	return outsider(t, l, client.ContainerCreateOptions{Name: name, Config: &container.Config{Labels: labels}})
}

// outsider makes a container that Atoll did not make, of the smallest image.
func outsider(t *testing.T, l *lab, o client.ContainerCreateOptions) string {
	t.Helper()
	o.Config.Image, o.Config.Cmd = enginetest.TinyImage, []string{"/bin/sleep", "600"}
	made, err := ask(t.Context(), l.engine, func(c *client.Client) (client.ContainerCreateResult, error) { return c.ContainerCreate(t.Context(), o) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := l.discard(ctx, made.ID); err != nil {
			t.Error(err)
		}
	})
	return made.ID
}

func TestForeignContainersAreLeftAlone(t *testing.T) {
	owners := map[string]map[string]string{
		"nobody's":               nil,
		"OpenClaw's":             {sandbox.LabelSandbox: "1", sandbox.LabelSessionKey: "agent:main", sandbox.LabelConfigHash: "x"},
		"another installation's": {sandbox.LabelSandbox: "1", sandbox.LabelInstallation: "another"},
	}
	onEach(t, func(t *testing.T, l *lab) {
		for owner, labels := range owners {
			t.Run(owner, func(t *testing.T) {
				spec := l.spec()
				id := stranger(t, l, spec.Name, labels)
				if _, err := l.Open(t.Context(), spec.Name); !errors.Is(err, sandbox.ErrForeign) {
					t.Errorf("open: %v", err)
				}
				_, err := l.Create(t.Context(), spec)
				if !errors.Is(err, sandbox.ErrForeign) || errhint.Of(err) == "" {
					t.Errorf("create: %v, hint %q", err, errhint.Of(err))
				}
				for _, s := range mustList(t, l) {
					if s.ID == id {
						t.Error("it is in the list")
					}
				}
				if _, err := l.inspect(t.Context(), id); err != nil {
					t.Errorf("it is gone: %v", err)
				}
			})
		}
	})
}

func mustList(t *testing.T, l *lab) []sandbox.Summary {
	t.Helper()
	list, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestList(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		running := l.start(t)
		created, err := l.Create(t.Context(), l.spec())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]sandbox.Summary{}
		for _, s := range mustList(t, l) {
			got[s.Name] = s
		}
		if len(got) != 2 {
			t.Fatalf("list has %d sandboxes, want 2", len(got))
		}
		for _, want := range []sandbox.Summary{running.Seen(), created.Seen()} {
			s := got[want.Name]
			if s.ID != want.ID || s.State != want.State || s.Image != want.Image || s.ImageID != want.ImageID ||
				s.Labels[sandbox.LabelConfigHash] != "hash" || time.Since(s.CreatedAt) > time.Hour {
				t.Errorf("list says %+v, the instance %+v", s, want)
			}
		}
	})
}

// The engine finds containers by the beginning of their id, too. No
// sandbox is opened that way.
func TestOpenWantsTheWholeName(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		i := l.start(t)
		if _, err := l.Open(t.Context(), i.id[:12]); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("opened by id: %v", err)
		}
	})
}

// A name that comes to belong to someone else between look and deed does not
// redirect the deed.
func TestRemovalFollowsTheIDNotTheName(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		spec := l.spec()
		ours, err := l.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.discard(t.Context(), ours.Seen().ID); err != nil {
			t.Fatal(err)
		}
		theirs := stranger(t, l, spec.Name, nil)
		for _, deed := range []func(context.Context) error{ours.Kill, ours.Remove} {
			if err := deed(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if _, err := l.inspect(t.Context(), theirs); err != nil {
			t.Errorf("the stranger under that name is gone: %v", err)
		}
	})
}

func TestCreateAtOnceMakesOne(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		spec := l.spec()
		var made, exists, other int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, err := l.Create(t.Context(), spec)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					made++
				case errors.Is(err, sandbox.ErrExists):
					exists++
				default:
					other++
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if made != 1 || exists != 7 || len(mustList(t, l)) != 1 {
			t.Fatalf("made %d, existing %d, failed %d, listed %d", made, exists, other, len(mustList(t, l)))
		}
		i, err := l.Open(t.Context(), spec.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := sh(t, i, "echo well"); got != "well" {
			t.Errorf("the survivor says %q", got)
		}
	})
}

func TestMissingImage(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		cases := map[string]string{
			"no-such-image:tag":                 "pull no-such-image:tag with the engine's own tool, or name another image in sandbox.docker.image",
			"openclaw-sandbox:no-such-tag":      "atoll images build sandbox",
			"openclaw-sandbox-common:no-such-x": "atoll images build common",
		}
		for image, hint := range cases {
			spec := l.spec(func(s *sandbox.Spec) { s.Image = image })
			_, err := l.Create(t.Context(), spec)
			if !errors.Is(err, sandbox.ErrNoImage) || !strings.Contains(err.Error(), "Sandbox image not found: "+image+". Build or pull it first.") {
				t.Errorf("%s: %v", image, err)
			}
			if got := errhint.Of(err); got != hint {
				t.Errorf("%s: hint %q, want %q", image, got, hint)
			}
		}
	})
}
