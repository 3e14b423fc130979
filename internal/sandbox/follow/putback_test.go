package follow_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/sandbox/follow"
)

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

// remove removes a file or directory through the guest.
func (s *stage) remove(path string) {
	s.t.Helper()
	_, err := s.insideFiles.Remove(s.t.Context(), filepath.Join(s.dir, path), &guestfs.RemoveOptions{Recursive: true})
	mustDo(s.t, err)
}

// What a person rejects is as the host has it, and no change any more.
func TestPutBack(t *testing.T) {
	eachKind(t, func(s *stage) {
		s.agent("one", "agent\n")
		s.agent("made/deep/file", "agent\n")
		s.remove("src")
		s.agent("src", "a file now\n")
		s.remove("ready")
		s.agent("ready/sub", "x\n")
		left, err := s.follower.PutBack(t.Context(), []follow.Rejected{
			{Path: "one", Kind: guestfs.KindFile, SHA256: sum("agent\n")},
			{Path: "made", Kind: guestfs.KindDir}, {Path: "made/deep", Kind: guestfs.KindDir}, {Path: "made/deep/file", Kind: guestfs.KindFile, SHA256: sum("agent\n")},
			{Path: "src", Kind: guestfs.KindFile, SHA256: sum("a file now\n")}, {Path: "src/two"},
			{Path: "ready", Kind: guestfs.KindDir}, {Path: "ready/sub", Kind: guestfs.KindFile, SHA256: sum("x\n")},
		})
		if err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
		for path, want := range map[string]string{"one": "1\n", "src/two": "2\n", "ready": "yes\n", "made/deep/file": ""} {
			if got := s.inside(path); got != want {
				t.Errorf("%s is %q inside, want %q", path, got, want)
			}
		}
		s.wantsChanges("")
		for _, path := range []string{"one", "src/two"} {
			if begun, err := s.tree.AsBegun(path); !begun || err != nil {
				t.Errorf("%s is a conflict: %v", path, err)
			}
		}
	})
}

// What the agent changed since, what is not empty and what is too large stays.
func TestPutBackLeavesWhatIsNotRejected(t *testing.T) {
	eachKind(t, func(s *stage) {
		s.agent("one", "newer\n")
		s.agent("full/kept", "agent\n")
		s.agent("back", "made again\n")
		mustDo(t, os.Symlink("one", filepath.Join(s.base, "link")))
		left, err := s.follower.PutBack(t.Context(), []follow.Rejected{
			{Path: "one", Kind: guestfs.KindFile, SHA256: sum("agent\n")}, {Path: "full", Kind: guestfs.KindDir}, {Path: "back"}, {Path: "link"},
		})
		slices.Sort(left)
		if want := "[back full link one]"; err != nil || fmt.Sprint(left) != want {
			t.Errorf("left: %v, %v; want %s", left, err, want)
		}
		for path, want := range map[string]string{"one": "newer\n", "full/kept": "agent\n", "back": "made again\n"} {
			if got := s.inside(path); got != want {
				t.Errorf("%s is %q inside, want %q", path, got, want)
			}
		}
	})
}

// A secret of the host is not written inside in place of what was rejected.
func TestPutBackWritesNoSecret(t *testing.T) {
	eachKind(t, func(s *stage) {
		s.agent("src/.env", "AGENT=1\n")
		s.host("src/.env", "TOKEN=1\n")
		left, err := s.follower.PutBack(t.Context(), []follow.Rejected{{Path: "src/.env", Kind: guestfs.KindFile, SHA256: sum("AGENT=1\n")}})
		if err != nil || len(left) > 0 || s.inside("src/.env") != "" {
			t.Errorf("%q is left, inside is %q, %v", left, s.inside("src/.env"), err)
		}
	})
}
