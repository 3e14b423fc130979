package rootfs

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/atoll-run/atoll/internal/errhint"
)

// serve runs a registry on loopback. Between, if any, sees every request first.
func serve(t *testing.T, between func(http.Handler) http.Handler) (host string) {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if between != nil {
		handler = between(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func push(t *testing.T, ref string, image v1.Image) {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	if err == nil {
		err = remote.Write(parsed, image, connection(t))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// connection lets no connection outlive its test.
func connection(t *testing.T) remote.Option {
	transport, err := new(Store).newTransport()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return remote.WithTransport(transport)
}

func TestPull(t *testing.T) {
	base, upper := twoLayers(t)
	image := imageOf(t, base, upper)
	ref := serve(t, nil) + "/team/image:tag"
	push(t, ref, image)
	s := open(t, Options{})
	var last Progress
	got, err := s.Pull(t.Context(), ref, AddOptions{Report: func(p Progress) {
		if p.LayersDone >= last.LayersDone {
			last = p
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil || got.ID != idOf(t, image) || got.Digest != digest.String() {
		t.Errorf("image = %+v, %v", got, err)
	}
	if last.Layers != 2 || last.Bytes == 0 || last.BytesDone == 0 {
		t.Errorf("progress = %+v", last)
	}
	checkRoot(t, s, ref)
	checkRoot(t, s, strings.TrimSuffix(ref, ":tag")+"@"+digest.String())
}

func TestPullSharesLayers(t *testing.T) {
	base, upper := twoLayers(t)
	var mu sync.Mutex
	var layers []string
	host := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
				mu.Lock()
				layers = append(layers, r.URL.Path)
				mu.Unlock()
			}
			next.ServeHTTP(w, r)
		})
	})
	push(t, host+"/one", imageOf(t, base))
	push(t, host+"/two", imageOf(t, base, upper))
	s := open(t, Options{})
	for _, n := range []string{"/one", "/two", "/two"} {
		if _, err := s.Pull(t.Context(), host+n, AddOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	// Two layers, and a configuration a pull.
	if len(layers) != 5 || len(leftovers(t, s, "layers")) != 2 {
		t.Errorf("fetched %v, keeps %v", layers, leftovers(t, s, "layers"))
	}
}

func TestPullChoosesThePlatform(t *testing.T) {
	image := imageOf(t, pack(t, tarFile("mine", "")))
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: imageOf(t, pack(t, tarFile("other", ""))), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}},
		mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
	ref := serve(t, nil) + "/multi:1"
	parsed, err := name.ParseReference(ref)
	if err == nil {
		err = remote.WriteIndex(parsed, index, connection(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := open(t, Options{}).Pull(t.Context(), ref, AddOptions{})
	if err != nil || got.ID != idOf(t, image) {
		t.Errorf("image = %+v, %v", got, err)
	}
}

func TestPullRefusesARegistryThatLies(t *testing.T) {
	image := imageOf(t, pack(t, tarFile("f", "honest")))
	other := zip(t, pack(t, tarFile("f", "evil")))
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	layer, config := manifest.Layers[0].Digest.String(), manifest.Config.Digest.String()
	for name, c := range map[string]struct {
		blob    string
		content []byte
	}{
		"layer":                       {layer, other},
		"half a layer":                {layer, nil},
		"configuration":               {config, []byte(`{"rootfs":{"diff_ids":["sha256:` + strings.Repeat("0", 64) + `"]}}`)},
		"layer that goes on for ever": {layer, zip(t, make([]byte, 1<<20))},
	} {
		t.Run(name, func(t *testing.T) {
			host := serve(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, c.blob) {
						_, _ = w.Write(c.content)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			push(t, host+"/a:b", image)
			s := open(t, Options{})
			if _, err := s.Pull(t.Context(), host+"/a:b", AddOptions{}); err == nil {
				t.Error("accepted")
			}
			if left := append(leftovers(t, s, "layers"), leftovers(t, s, "tmp")...); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestPullSaysWhatToDo(t *testing.T) {
	host := serve(t, nil)
	private := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	})
	for ref, want := range map[string]string{
		host + "/not/there:1": "check the name",
		private + "/x:1":      "docker login",
		"127.0.0.1:1/x:1":     "docker save",
		"Not A Name":          "write for example",
		"host":                "leave `image` unset",
	} {
		if _, err := open(t, Options{}).Pull(t.Context(), ref, AddOptions{}); err == nil || !strings.Contains(errhint.Of(err), want) {
			t.Errorf("%s: %v, hint %q", ref, err, errhint.Of(err))
		}
	}
}

func TestPullSpeaksPlainTextOnLoopbackOnly(t *testing.T) {
	s := open(t, Options{Insecure: []string{"10.0.0.9:5000"}})
	reached := s.tlsTransport(refuser{}, "localhost:5000")
	for url, allowed := range map[string]bool{
		"http://127.0.0.1:5000/v2/": true, "http://localhost:5000/v2/": true, "http://[::1]:5000/v2/": true,
		"http://10.0.0.1/v2/": false, "http://10.0.0.9:5000/v2/": true, "http://10.0.0.9/v2/": false, "http://192.168.1.1:5000/v2/": false, "http://registry.local/v2/": false, "http://127.0.0.1.example.com/": false,
		"https://registry.example.com/v2/": true,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = reached.RoundTrip(r)
		if got := !errors.Is(err, errPlain); got != allowed {
			t.Errorf("%s: %v", url, err)
		}
		if _, err := s.tlsTransport(refuser{}, "registry.example.com").RoundTrip(r); strings.HasPrefix(url, "http://l") && !errors.Is(err, errPlain) {
			t.Errorf("a registry elsewhere sends us to %s: %v", url, err)
		}
	}
}

type refuser struct{}

func (refuser) RoundTrip(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("sent") }
