package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

func TestWeb(t *testing.T) {
	cfg, err := config.Parse("atoll.json5", []byte(`{tools: {web: {
		search: {provider: "brave", apiKey: "sesame", cacheTtlMinutes: 1},
		fetch: {allowAddresses: ["10.0.0.0/8"], ssrfPolicy: {allowedHostnames: ["x"]}},
	}}}`), config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	web := cfg.Web()
	if web.Search.Provider != "brave" || web.Search.APIKey.Reveal() != "sesame" || len(web.Fetch.AllowAddresses) != 1 {
		t.Errorf("got %+v", web)
	}
	if text := fmt.Sprintf("%v %+v %#v", web, web, web.Search.APIKey); strings.Contains(text, "sesame") {
		t.Errorf("the key is printed: %s", text)
	}
	if len(cfg.Warnings()) != 2 {
		t.Errorf("warnings: %v", cfg.Warnings())
	}
}
