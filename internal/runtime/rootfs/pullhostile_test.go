package rootfs

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/atoll-run/atoll/internal/errhint"
)

// saying is a registry that has an image, and answers something else when it is
// asked for the manifest.
func saying(t *testing.T, image v1.Image, kind types.MediaType, manifest []byte) (ref string) {
	t.Helper()
	var lying atomic.Bool
	host := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") && lying.Load() {
				w.Header().Set("Content-Type", string(kind))
				_, _ = w.Write(manifest)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	push(t, host+"/a:b", image)
	lying.Store(true)
	return host + "/a:b"
}

func changed(t *testing.T, image v1.Image, change func(*v1.Manifest)) []byte {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	manifest = manifest.DeepCopy()
	change(manifest)
	data, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestPullRefusesHostileManifests(t *testing.T) {
	var asked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(elsewhere.Close)
	base, upper := twoLayers(t)
	image := imageOf(t, base, upper)
	kind := types.DockerManifestSchema2
	for name, c := range map[string]struct {
		kind     types.MediaType
		manifest []byte
		want     error
		hint     string
	}{
		"a layer from elsewhere": {kind, changed(t, image, func(m *v1.Manifest) {
			m.Layers[0].URLs, m.Layers[0].Digest = []string{elsewhere.URL + "/layer"}, m.Config.Digest
		}), ErrForeign, "all of its layers"},
		"a configuration without a size": {kind, changed(t, image, func(m *v1.Manifest) { m.Config.Size = -1 }), ErrTooMuch, ""},
		"a layer without a size":         {kind, changed(t, image, func(m *v1.Manifest) { m.Layers[1].Size = -1 }), ErrTooMuch, ""},
		"a chart":                        {kind, changed(t, image, func(m *v1.Manifest) { m.Layers[0].MediaType = "application/chart" }), ErrNoLayers, "container image"},
		"no layers":                      {kind, changed(t, imageOf(t), func(m *v1.Manifest) {}), ErrNoLayers, ""},
		"a manifest without end":         {kind, []byte(strings.Repeat(" ", 9<<20)), ErrTooMuch, ""},
		"an index without end":           {types.OCIImageIndex, []byte(strings.Repeat(" ", 9<<20)), ErrTooMuch, ""},
		"an index for other machines": {types.OCIImageIndex,
			[]byte(`{"schemaVersion":2,"manifests":[{"digest":"sha256:` + strings.Repeat("0", 64) + `","platform":{"os":"plan9","architecture":"mips"}}]}`), nil, "plan9/mips"},
		"a manifest of old":  {types.DockerManifestSchema1, []byte(`{"schemaVersion":1}`), nil, ""},
		"no manifest at all": {kind, []byte("<html>"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			ref := saying(t, image, c.kind, c.manifest)
			_, err := s.Pull(t.Context(), ref, AddOptions{})
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(errhint.Of(err), c.hint) {
				t.Errorf("error = %v, want %v; hint %q", err, c.want, errhint.Of(err))
			}
			if err != nil && !strings.Contains(err.Error(), ref) {
				t.Errorf("error does not name the image: %v", err)
			}
			nothingLeft(t, s)
		})
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests to where an image sent us", n)
	}
}
