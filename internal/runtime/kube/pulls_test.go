package kube

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// otherPlatform is an image for a machine that no node is.
const otherPlatform = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json",
	"digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":100,"platform":{"architecture":"s390x","os":"linux"}}]}`

// TestPullsThatFail: an image that a registry refuses, does not have, has for other machines
// or never sends is an error, in the kubelet's words, and the pod is gone.
func TestPullsThatFail(t *testing.T) {
	s := clusterSettings(t)
	s.ImagePullPolicy, s.StartTimeoutSec = "Always", 20
	listener := clustertest.Shared(t).Listen(t)
	stalled := make(chan struct{})
	registry := http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/refused/"):
			http.Error(w, "unauthorized", http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/stalls/"):
			<-stalled
		case strings.Contains(r.URL.Path, "/other/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
			_, _ = fmt.Fprint(w, otherPlatform)
		default:
			http.NotFound(w, r)
		}
	})}
	go func() { _ = registry.Serve(listener) }()
	for name, c := range map[string]struct {
		kind       error
		text, hint string
	}{
		"refused": {sandbox.ErrNoImage, "401", "kubernetes.imagePullSecrets"},
		"missing": {sandbox.ErrNoImage, "not found", "kubernetes.guestImage"},
		"other":   {sandbox.ErrNoImage, "no match for platform", "kubernetes.guestImage"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, err := pulled(t, s, listener.Addr().String()+"/"+name+"/image:1")
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || !strings.Contains(errhint.Of(err), c.hint) {
				t.Errorf("%v (%s)", err, errhint.Of(err))
			}
			if left := podsOf(t, r); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	t.Run("stalls", func(t *testing.T) { // the last: a kubelet pulls one image after the other
		own, image := *s, listener.Addr().String()+"/stalls/image:1"
		own.StartTimeoutSec = 12
		begin := time.Now()
		r, said, err := pulled(t, &own, image)
		if took := time.Since(begin); took > r.startTimeout()+busySlack {
			t.Errorf("the caller was held for %v", took)
		}
		if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "is still pulling image "+image) || !strings.Contains(errhint.Of(err), "kubernetes.startTimeoutSec") {
			t.Errorf("%v (%s)", err, errhint.Of(err))
		}
		if !strings.Contains(said, "level=WARN") || !strings.Contains(said, image) {
			t.Errorf("nobody was told that the image is pulled: %s", said)
		}
		if left, err := r.List(t.Context()); len(left) > 0 || err != nil {
			t.Errorf("left: %v, %v", left, err)
		}
		if err := r.Sweep(t.Context(), "pulled"); err != nil { // which does not wait for the kubelet again
			t.Error(err)
		}
		close(stalled)
		awaitGone(t, r)
	})
}

// busySlack is how much longer than its limit something may take on a busy machine.
const busySlack = 10 * time.Second

// pulled makes a sandbox with a guest of that image, which is pulled first, and returns what
// was logged and why it is not made.
func pulled(t *testing.T, s *kubekeys.Settings, image string) (*Runtime, string, error) {
	t.Helper()
	own := *s
	own.GuestImage = image
	r, begin := testRuntime(t, &own), time.Now()
	var said bytes.Buffer
	r.logger = slog.New(slog.NewTextHandler(&said, nil))
	_, err := r.Create(t.Context(), smallSpec("pulled"))
	if took := time.Since(begin); err == nil || took > r.startTimeout()+cleanupTimeout {
		t.Fatalf("%v after %v", err, took)
	}
	return r, said.String(), err
}

// TestPulledNow: of the events of a pod those of an image that has arrived do not count.
func TestPulledNow(t *testing.T) {
	event := func(reason, message string) corev1.Event { return corev1.Event{Reason: reason, Message: message} }
	guest, guestDone := event("Pulling", `Pulling image "r/guest:1"`), event("Pulled", `Successfully pulled image "r/guest:1" in 2s. Image size: 4 bytes.`)
	box := event("Pulling", `Pulling image "r/box:1"`)
	for want, found := range map[string][]corev1.Event{"": {event("Scheduled", `to "n"`), guest, guestDone}, "r/guest:1": {guest}, "r/box:1": {box, guestDone, guest}} {
		if image := pulledNow(found); image != want {
			t.Errorf("%q, not %q", image, want)
		}
	}
}
