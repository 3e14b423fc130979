package policy_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/policy"
)

// What every ensure pays for its checks, on a real disk.
func BenchmarkValidate(b *testing.B) {
	dir := b.TempDir()
	docker := plain()
	docker.Binds = []string{dir + ":/data:ro"}
	host := policy.Host{Disk: hostpath.Disk{}, Homes: []string{"/home/user"}, Roots: []string{dir}}
	for b.Loop() {
		if found := policy.Validate(docker, host); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

func BenchmarkConfigHash(b *testing.B) {
	s := vectorSandbox()
	for b.Loop() {
		policy.ConfigHash(s, vectorDirs)
	}
}

func BenchmarkValidateWorkspace(b *testing.B) {
	dir := b.TempDir()
	host := policy.Host{Disk: hostpath.Disk{}, Homes: []string{"/home/user"}}
	for b.Loop() {
		policy.ValidateWorkspace(dir, host)
	}
}

func BenchmarkIdentify(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		if _, err := hostpath.Identify(dir); err != nil {
			b.Fatal(err)
		}
	}
}
