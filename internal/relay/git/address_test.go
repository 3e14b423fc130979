package git_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/outbound"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/testkit/relaytest"
)

// The server's name is resolved here, and git connects to what was found.
func TestRemoteByName(t *testing.T) {
	server := relaytest.NewGitServer(t, token)
	repo, remote, base := mirror(t, server)
	remote.URL = strings.Replace(remote.URL, "127.0.0.1", "localhost", 1)
	if !strings.Contains(remote.URL, "localhost") {
		t.Fatalf("the server is at %s", remote.URL)
	}
	if heads, err := repo.Heads(t.Context(), remote, main); err != nil || heads[main] != base {
		t.Errorf("%v, %v", heads, err)
	}
}

// No remote leads to a metadata service, and no name that cannot be resolved is
// handed to git.
func TestRemoteAddressesAreChecked(t *testing.T) {
	repo, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "mirror.git"), confined.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"} {
		if _, err := repo.Heads(t.Context(), &git.Remote{URL: "https://" + host + "/x.git"}, main); !errors.Is(err, outbound.ErrMetadata) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := repo.Heads(t.Context(), &git.Remote{URL: "https://no.such.name.invalid/x.git"}, main); err == nil || strings.Contains(err.Error(), "exit status") {
		t.Errorf("an unknown name: %v", err)
	}
}
