package kube

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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
			r, err := pulled(t, s, listener.Addr().String()+"/"+name+"/image:1")
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || !strings.Contains(errhint.Of(err), c.hint) {
				t.Errorf("%v (%s)", err, errhint.Of(err))
			}
			if left := podsOf(t, r); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	t.Run("stalls", func(t *testing.T) { // the last: a kubelet pulls one image after the other
		own := *s
		own.StartTimeoutSec = 8
		time.AfterFunc(12*time.Second, func() { close(stalled) }) // a kubelet keeps the pod until the pull ends
		r, err := pulled(t, &own, listener.Addr().String()+"/stalls/image:1")
		if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "Pulling image") || errhint.Of(err) == "" {
			t.Errorf("%v (%s)", err, errhint.Of(err))
		}
		if left := podsOf(t, r); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// pulled makes a sandbox with a guest of that image, which is pulled first, and returns why it
// is not made.
func pulled(t *testing.T, s *kubekeys.Settings, image string) (*Runtime, error) {
	t.Helper()
	own := *s
	own.GuestImage = image
	r, begin := testRuntime(t, &own), time.Now()
	_, err := r.Create(t.Context(), smallSpec("pulled"))
	if took := time.Since(begin); err == nil || took > time.Minute+cleanupTimeout { // its own limit and a busy machine
		t.Fatalf("%v after %v", err, took)
	}
	return r, err
}
