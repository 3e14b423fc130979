package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// tarOf packs one file.
func tarOf(t *testing.T, name, content string) *bytes.Buffer {
	t.Helper()
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return &buffer
}

// ownImage is a reference that is removed after the test.
func ownImage(t *testing.T, l *lab) string {
	t.Helper()
	ref := "atoll-test-" + strings.ToLower(rand.Text()[:12]) + ":v1"
	t.Cleanup(func() { removeImage(t, l, ref) })
	return ref
}

func removeImage(t *testing.T, l *lab, ref string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	l.clear(t) // an image in use cannot be removed
	_, err := ask(ctx, l.engine, func(c *client.Client) (client.ImageRemoveResult, error) {
		return c.ImageRemove(ctx, ref, client.ImageRemoveOptions{Force: true})
	})
	if err != nil && !isNotFound(err) {
		t.Errorf("image %s is left: %v", ref, err)
	}
}

func buildImage(t *testing.T, l *lab, dockerfile string) string {
	t.Helper()
	ref := ownImage(t, l)
	var progress bytes.Buffer
	err := l.Build(t.Context(), tarOf(t, "Dockerfile", dockerfile), image.BuildOptions{Tag: ref, Dockerfile: "Dockerfile"}, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	return ref
}

func removeVolume(t *testing.T, l *lab, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	l.clear(t)
	_, err := ask(ctx, l.engine, func(c *client.Client) (client.VolumeRemoveResult, error) {
		return c.VolumeRemove(ctx, name, client.VolumeRemoveOptions{Force: true})
	})
	if err != nil && !isNotFound(err) {
		t.Errorf("volume %s is left: %v", name, err)
	}
}

// An image whose tag went to another one is not offered: it has no reference.
func TestNewestImageHasATag(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		label := "atoll.test-" + strings.ToLower(rand.Text())
		ref := buildImage(t, l, "FROM "+enginetest.TinyImage+"\nLABEL "+label+"=x\n")
		if got, err := l.NewestImage(t.Context(), label); err != nil || !strings.HasSuffix(got, ref) {
			t.Errorf("the tagged image: %q, %v", got, err)
		}
		made, err := l.ImageInfo(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeImage(t, l, made.ID) })
		if err := l.ImageTag(t.Context(), enginetest.TinyImage, ref); err != nil {
			t.Fatal(err)
		}
		if got, err := l.NewestImage(t.Context(), label); err != nil || got != "" {
			t.Errorf("the image without a tag: %q, %v", got, err)
		}
	})
}

func TestBuild(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		ref := ownImage(t, l)
		const dockerfile = "FROM " + enginetest.TinyImage + "\nARG WHO=nobody\nRUN echo built by $WHO\nUSER 77\n"
		who := rand.Text() // never in a cache
		options := image.BuildOptions{Tag: ref, Dockerfile: "Dockerfile", Args: map[string]string{"WHO": who},
			Labels: map[string]string{"made": "here"}, Network: "none"}
		var progress bytes.Buffer
		if err := l.Build(t.Context(), tarOf(t, "Dockerfile", dockerfile), options, &progress); err != nil {
			t.Fatalf("%v\n%s", err, &progress)
		}
		if !strings.Contains(progress.String(), "built by "+who) {
			t.Errorf("progress does not show the step's output:\n%s", &progress)
		}
		if has, err := l.HasImage(t.Context(), ref); !has || err != nil {
			t.Errorf("image is there: %v, %v", has, err)
		}
		if user, err := l.ImageUser(t.Context(), ref); user != "77" || err != nil {
			t.Errorf("image's user: %q, %v", user, err)
		}
		before, err := l.inspectImage(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		err = l.Build(t.Context(), tarOf(t, "Dockerfile", "FROM "+enginetest.TinyImage+"\nRUN echo broken; exit 3\n"), options, &progress)
		if err == nil || !strings.Contains(err.Error(), "exit 3") {
			t.Errorf("failing step: %v", err)
		}
		if after, err := l.inspectImage(t.Context(), ref); err != nil || after.id != before.id {
			t.Errorf("a failed build moved the tag from %s to %s (%v)", before.id, after.id, err)
		}
	})
}

func TestImport(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		ref := ownImage(t, l)
		if has, err := l.HasImage(t.Context(), ref); has || err != nil {
			t.Fatalf("image is there before: %v, %v", has, err)
		}
		if err := l.Import(t.Context(), tarOf(t, "etc/os-release", "NAME=test\n"), ref); err != nil {
			t.Fatal(err)
		}
		if has, err := l.HasImage(t.Context(), ref); !has || err != nil {
			t.Errorf("image is there after: %v, %v", has, err)
		}
	})
}

func TestPullFailureIsAnError(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		// Nothing listens on the port: no request leaves this machine.
		if err := l.Pull(ctx, "127.0.0.1:1/no/such:image", new(bytes.Buffer)); err == nil {
			t.Error("a pull from nowhere succeeded")
		}
	})
}
