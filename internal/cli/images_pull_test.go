package cli_test

import (
	"io"
	"log"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// An image that is pulled can have a second name at once.
//
// Seen to fail without the call of Tag.
func TestPullAs(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := strings.TrimPrefix(server.URL, "http://") + "/library/debian:bookworm-slim"
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture = "linux", runtime.GOARCH
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(parsed, image); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	if out, said, code := p.atoll("images", "pull", ref, "--as", "openclaw-sandbox:bookworm-slim"); code != 0 {
		t.Fatalf("%d: %s%s", code, out, said)
	}
	out, said, code := p.atoll("images", "list")
	if code != 0 || !strings.Contains(out, "openclaw-sandbox:bookworm-slim") || !strings.Contains(out, ref) {
		t.Errorf("%d: %s%s", code, out, said)
	}
}
