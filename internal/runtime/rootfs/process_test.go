package rootfs

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childVariable makes the test's own program pull an image and end.
const childVariable = "ATOLL_ROOTFS_TEST_CHILD"

func TestMain(m *testing.M) {
	if store, ref, ok := strings.Cut(os.Getenv(childVariable), " "); ok {
		if err := pullAndKeep(store, ref); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func pullAndKeep(dir, ref string) error {
	s, err := Open(dir, Options{Volatile: true})
	if err != nil {
		return err
	}
	if _, err := s.Pull(context.Background(), ref, AddOptions{}); err != nil {
		return err
	}
	_, pin, err := s.Resolve(context.Background(), ref, Identity{UID: os.Getpid()})
	if err != nil {
		return err
	}
	defer pin.Release()
	return pin.Keep(fmt.Sprintf("box-%d", os.Getpid()))
}

func child(t *testing.T, s *Store, ref string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), childVariable+"="+s.dir+" "+ref)
	said := &strings.Builder{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, said
}

func TestProcessesPullTheSameImageTogether(t *testing.T) {
	base, upper := twoLayers(t)
	var fetched atomic.Int64
	host := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
				fetched.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	push(t, host+"/a:b", imageOf(t, base, upper))
	s := open(t, Options{})
	const crowd = 6
	var children []*exec.Cmd
	var said []*strings.Builder
	for range crowd {
		cmd, words := child(t, s, host+"/a:b")
		children, said = append(children, cmd), append(said, words)
	}
	for i, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, said[i])
		}
	}
	if got := fetched.Load(); got != crowd+2 { // a configuration each, every layer once
		t.Errorf("%d blobs fetched", got)
	}
	if left := leftovers(t, s, "tmp"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if pins := leftovers(t, s, "pins"); len(pins) != crowd {
		t.Errorf("pins = %v", pins)
	}
	checkRoot(t, s, host+"/a:b")
}

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not in a minute: " + what)
		}
	}
}

func TestAPullThatWasKilledLeavesNothingInTheWay(t *testing.T) {
	base, upper := twoLayers(t)
	image := imageOf(t, base, upper)
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var stuck atomic.Bool
	stuck.Store(true)
	host := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, manifest.Layers[1].Digest.Hex) && stuck.Load() {
				w.Header().Set("Content-Length", fmt.Sprint(manifest.Layers[1].Size))
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	push(t, host+"/a:b", image)
	s := open(t, Options{})
	cmd, _ := child(t, s, host+"/a:b")
	eventually(t, "the first layer is unpacked, the second being waited for", func() bool {
		files, _ := filepath.Glob(s.path("tmp", "*", layerFiles, "bin", "sh"))
		temps, _ := os.ReadDir(s.path("tmp"))
		return len(files) == 1 && len(temps) == 2
	})
	if done := collect(t, s, nil); !done.Busy {
		t.Errorf("collected under the hands of a pull: %+v", done)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	stuck.Store(false)
	if left := leftovers(t, s, "layers"); len(left) > 0 {
		t.Errorf("half an image has layers: %v", left)
	}
	if _, err := s.Pull(t.Context(), host+"/a:b", AddOptions{}); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, s, "tmp"); len(left) > 0 { // the next pull took it away
		t.Errorf("left %v", left)
	}
	checkRoot(t, s, host+"/a:b")
}
