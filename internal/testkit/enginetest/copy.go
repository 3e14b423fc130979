package enginetest

import (
	"net/http"
	"strings"
	"testing"
)

// CopyImage copies an image from one engine to another that lacks it.
func CopyImage(tb testing.TB, from, to, ref string) {
	tb.Helper()
	source, target := unixClient(strings.TrimPrefix(from, "unix://")), unixClient(strings.TrimPrefix(to, "unix://"))
	defer source.CloseIdleConnections()
	defer target.CloseIdleConnections()
	if _, err := call(tb.Context(), target, http.MethodGet, "/v1.41/images/"+ref+"/json", nil); err == nil {
		return
	}
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://engine/v1.41/images/"+ref+"/get", nil)
	if err != nil {
		tb.Fatal(err)
	}
	image, err := source.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer image.Body.Close()
	if image.StatusCode != http.StatusOK {
		tb.Fatalf("image %s: %s", ref, image.Status)
	}
	if _, err := call(tb.Context(), target, http.MethodPost, "/v1.41/images/load", image.Body); err != nil {
		tb.Fatal(err)
	}
}
