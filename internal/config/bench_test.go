package config_test

import (
	"os"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

// BenchmarkParse is what every command pays before it does anything.
func BenchmarkParse(b *testing.B) {
	src, err := os.ReadFile("testdata/good/every-key.json5")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := config.Parse("/project/atoll.json5", src, testEnv()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	src, err := os.ReadFile("testdata/good/every-key.json5")
	if err != nil {
		b.Fatal(err)
	}
	cfg, err := config.Parse("/project/atoll.json5", src, testEnv())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := cfg.Resolve("main"); err != nil {
			b.Fatal(err)
		}
	}
}
