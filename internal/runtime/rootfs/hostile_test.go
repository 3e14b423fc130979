package rootfs

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/atoll-run/atoll/internal/errhint"
)

// override is an entry whose extended header says something else than its own.
func override(t testing.TB, own item, records ...string) []byte {
	t.Helper()
	var said strings.Builder
	for _, r := range records {
		n := len(r) + 3
		n += len(fmt.Sprint(n)) - 1
		fmt.Fprintf(&said, "%d %s\n", n, r)
	}
	const end = 1024
	extended := pack(t, tarFile("PaxHeaders/x", said.String()))
	extended = extended[:len(extended)-end]
	extended[156] = tar.TypeXHeader
	copy(extended[148:156], "        ")
	sum := 0
	for _, b := range extended[:512] {
		sum += int(b)
	}
	copy(extended[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return append(extended, pack(t, own)...)
}

func TestExtendedHeadersAreHeldToTheSameRules(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"path":               {override(t, tarFile("harmless", "x"), "path=../canary"), ErrEscapes},
		"path twice":         {override(t, tarFile("harmless", "x"), "path=fine", "path=../canary"), ErrEscapes},
		"path of a whiteout": {override(t, tarFile("harmless", "x"), "path=a/.wh..."), ErrBadName},
		"link's path":        {override(t, tarHard("harmless", "harmless2"), "linkpath=../canary"), ErrEscapes},
		"size":               {override(t, tarFile("harmless", "x"), "size=1099511627776"), ErrTooMuch},
		"size below nothing": {override(t, tarFile("harmless", "x"), "size=-1"), tar.ErrHeader},
		"path with a zero":   {override(t, tarFile("harmless", "x"), "path=a\x00b"), tar.ErrHeader},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := unpackInto(t.Context(), c.data, dir, Limits{}); !errors.Is(err, c.want) {
				t.Errorf("error = %v, want %v", err, c.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 1 {
				t.Errorf("made %v, %v", left, err)
			}
		})
	}
}

// Names that look odd are names all the same: nothing is folded, decoded or
// shortened on the way.
func TestOddNamesAreKept(t *testing.T) {
	names := []string{"caf\u00e9", "cafe\u0301", "\u202egnp.exe", "new\nline", "tab\there", "back\\slash", "-rf", "~", "CON", "a b", "...", ". .", "\xff\xfe", "İ", "ı"}
	items := make([]item, 0, len(names))
	for _, n := range names {
		items = append(items, tarFile(n, n))
	}
	dir := t.TempDir()
	if _, err := unpackInto(t.Context(), pack(t, items...), dir, Limits{}); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if got, err := os.ReadFile(filepath.Join(dir, n)); err != nil || string(got) != n {
			t.Errorf("%q holds %q, %v", n, got, err)
		}
	}
}

func TestTimesBeyondAllCalendars(t *testing.T) {
	for record, want := range map[string]time.Time{
		"mtime=13000000000":          time.Unix(13000000000, 0), // more nanoseconds than an int64 holds
		"mtime=99999999999999999":    time.Unix(1<<34-1, 0),
		"mtime=-99999999999999999":   time.Unix(0, 0),
		"mtime=1000000000.123456789": time.Unix(1000000000, 0),
	} {
		dir := t.TempDir()
		if _, err := unpackInto(t.Context(), override(t, tarFile("f", "x"), record), dir, Limits{}); err != nil {
			t.Errorf("%s: %v", record, err)
			continue
		}
		info, err := os.Lstat(filepath.Join(dir, "f"))
		if err != nil {
			t.Fatal(err)
		}
		// File systems end at different times; none may wrap around.
		if got := info.ModTime(); got.After(want) || got.Before(time.Unix(0, 0)) || want.Unix() <= 1<<31 && !got.Equal(want) {
			t.Errorf("%s: %v, want %v", record, got, want)
		}
	}
}

// An overlay does not honour the mark on its root, so the layers below are left
// out instead.
func TestALayerThatHidesEverythingBelow(t *testing.T) {
	base, _ := twoLayers(t)
	wiping := pack(t, tarFile("new", "n"), tarFile(".wh..wh..opq", ""))
	for name, image := range map[string]v1.Image{"once": imageOf(t, base, wiping), "twice": imageOf(t, wiping, base, wiping)} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			for _, again := range []string{"a:b", "a:again"} { // the second finds the layers in the store
				if _, err := s.Import(t.Context(), save(t, "a.tar", savedArchive(t, image, again)), AddOptions{}); err != nil {
					t.Fatal(err)
				}
				root, pin, err := s.Resolve(t.Context(), again, Identity{})
				if err != nil {
					t.Fatal(err)
				}
				if got := merged(t, root.Layers...); strings.Contains(got, "bin") || !strings.Contains(got, "new f\n") {
					t.Errorf("merged:\n%s", got)
				}
				pin.Release()
			}
		})
	}
}

// skippable is a zstd stream that goes on for ever and holds nothing.
func skippable(n int) []byte {
	frame := make([]byte, 8+64)
	binary.LittleEndian.PutUint32(frame, 0x184d2a50)
	binary.LittleEndian.PutUint32(frame[4:], 64)
	return bytes.Repeat(frame, n)
}

func TestBombsOfEveryKind(t *testing.T) {
	zeros := pack(t, tarFile("zeros", strings.Repeat("\x00", 8<<20)))
	nothing := append(zstandard(t, nil), skippable(20_000)...)
	var wide bytes.Buffer
	w, err := zstd.NewWriter(&wide, zstd.WithWindowSize(256<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(zeros)
	if err = errors.Join(err, w.Flush(), w.Close()); err != nil {
		t.Fatal(err)
	}
	limits := Limits{Ratio: 100, RatioFree: 1 << 20}
	for name, c := range map[string]struct {
		data   []byte
		limits Limits
		want   error
	}{
		"gzip":                             {zip(t, zeros), limits, ErrTooMuch},
		"zstd":                             {zstandard(t, zeros), limits, ErrTooMuch},
		"gzip of a hole":                   {zip(t, hole(t, "pax", 4<<20)), limits, ErrTooMuch},
		"gzip that holds nothing for ever": {bytes.Repeat(zip(t, nil), 60_000), Limits{Size: 1 << 20}, ErrTooMuch},
		"zstd that holds nothing for ever": {nothing, Limits{Size: 1 << 20}, ErrTooMuch},
		"zstd that wants memory":           {wide.Bytes(), Limits{}, zstd.ErrWindowSizeExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{Limits: c.limits})
			_, err := s.ImportFrom(t.Context(), bytes.NewReader(c.data), "a bomb", AddOptions{Name: "bomb"})
			if !errors.Is(err, c.want) {
				t.Errorf("error = %v, want %v", err, c.want)
			}
			nothingLeft(t, s)
		})
	}
}

func nothingLeft(t *testing.T, s *Store) {
	t.Helper()
	if left := append(leftovers(t, s, "layers"), leftovers(t, s, "tmp")...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// reconfigured is an image with something else in its configuration or manifest.
func reconfigured(t testing.TB, image v1.Image, change func(*v1.ConfigFile)) v1.Image {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	change(config)
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

// relayered is a layout whose manifest says something else of its first layer.
func relayered(t testing.TB, image v1.Image, change func(*v1.Manifest)) string {
	t.Helper()
	dir := layoutDir(t, image, "a:b")
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	before, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	manifest = manifest.DeepCopy()
	change(manifest)
	data, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	after, _ := hashOf(data)
	index := filepath.Join(dir, layoutIndex)
	text, err := os.ReadFile(index)
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "blobs/sha256", after.Hex), data, 0o600),
			os.WriteFile(index, []byte(strings.ReplaceAll(string(text), before.Hex, after.Hex)), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestManifestsThatLie(t *testing.T) {
	base, upper := twoLayers(t)
	image := imageOf(t, base, upper)
	swapped := reconfigured(t, image, func(c *v1.ConfigFile) { slices.Reverse(c.RootFS.DiffIDs) })
	fewer := reconfigured(t, image, func(c *v1.ConfigFile) { c.RootFS.DiffIDs = c.RootFS.DiffIDs[:1] })
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"digests of the layers exchanged": {layoutDir(t, swapped, "a:b"), ErrDigest},
		"the same in docker save":         {save(t, "a.tar", savedArchive(t, swapped, "a:b")), ErrDigest},
		"a digest too few":                {layoutDir(t, fewer, "a:b"), ErrDigest},
		"no layers":                       {layoutDir(t, imageOf(t), "a:b"), ErrNoLayers},
		"no layers in docker save":        {save(t, "a.tar", savedArchive(t, imageOf(t), "a:b")), ErrNoLayers},
		"a layer from elsewhere": {relayered(t, image, func(m *v1.Manifest) {
			m.Layers[0].URLs = []string{"https://elsewhere.example/layer"}
		}), ErrForeign},
		"a layer that says so":           {relayered(t, image, func(m *v1.Manifest) { m.Layers[0].MediaType = types.DockerForeignLayer }), ErrForeign},
		"a chart":                        {relayered(t, image, func(m *v1.Manifest) { m.Layers[0].MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip" }), ErrNoLayers},
		"a size below nothing":           {relayered(t, image, func(m *v1.Manifest) { m.Layers[0].Size = -1 }), ErrTooMuch},
		"a size beyond all":              {relayered(t, image, func(m *v1.Manifest) { m.Layers[1].Size = 1 << 62 }), ErrTooMuch},
		"a configuration without a size": {relayered(t, image, func(m *v1.Manifest) { m.Config.Size = -1 }), ErrTooMuch},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			if _, err := s.Import(t.Context(), c.path, AddOptions{Name: "x"}); !errors.Is(err, c.want) {
				t.Errorf("error = %v, want %v", err, c.want)
			} else if errors.Is(err, ErrForeign) && errhint.Of(err) == "" {
				t.Error("no hint")
			}
			nothingLeft(t, s)
		})
	}
}

func TestAnArchiveWithTooManyNames(t *testing.T) {
	base, _ := twoLayers(t)
	data := savedArchive(t, imageOf(t, base), "a:b")
	f, err := os.Open(save(t, "x", data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	on, err := indexArchive(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Limits: Limits{Tags: 3}})
	list, err := s.listSaved(on)
	if err != nil {
		t.Fatal(err)
	}
	for tags, want := range map[int]error{3: nil, 4: ErrTooMuch} {
		list[0].RepoTags = slices.Repeat([]string{"a:b"}, tags)
		if _, err := s.readSaved(on, list, "here"); !errors.Is(err, want) {
			t.Errorf("%d names: %v", tags, err)
		}
	}
}

// What is remembered of an archive's parts is no more than an image needs.
func TestPartsWithLongNamesAreNotRemembered(t *testing.T) {
	long := strings.Repeat("d/", maxPartName/2) + "file"
	for name, last := range map[string]item{"name": tarFile(long, ""), "link": tarLink("l", long)} {
		f, err := os.Open(save(t, "a.tar", pack(t, tarFile(savedManifest, "[]"), last)))
		if err != nil {
			t.Fatal(err)
		}
		on, err := indexArchive(t.Context(), f)
		if err != nil || len(on.parts) > 0 {
			t.Errorf("%s: %d parts, %v", name, len(on.parts), err)
		}
		_ = f.Close()
	}
}
