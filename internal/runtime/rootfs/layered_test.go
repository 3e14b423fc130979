package rootfs

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func addLayer(t *testing.T, s *Store, o LayerOptions, items ...item) *Image {
	t.Helper()
	o.Source = "test"
	image, err := s.AddLayer(t.Context(), bytes.NewReader(pack(t, items...)), o)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// An image on another has the layers of both, and the settings of the base but for
// those that it replaces.
func TestAddLayer(t *testing.T) {
	s := open(t, Options{Volatile: true})
	base := addLayer(t, s, LayerOptions{Names: []string{"base:1"}, Env: []string{"PATH=/bin", "LANG=C"}, Labels: map[string]string{"a": "1"}}, tarDir("bin"), tarFile("bin/sh", "base"))
	top := addLayer(t, s, LayerOptions{Base: "base:1", Names: []string{"top:1", "top:latest"}, Env: []string{"PATH=/opt/bin:/bin"}, Labels: map[string]string{"b": "2"}}, tarDir("opt"), tarFile("opt/tool", "top"))
	if len(top.Layers) != 2 || top.Layers[0] != base.Layers[0] || top.OnHost {
		t.Errorf("layers %+v", top.Layers)
	}
	if !slices.Equal(top.Config.Env, []string{"LANG=C", "PATH=/opt/bin:/bin"}) || top.Config.Labels["a"] != "1" || top.Config.Labels["b"] != "2" || top.Config.SearchPath() != "/opt/bin:/bin" {
		t.Errorf("%+v", top.Config)
	}
	root, pin, err := s.Resolve(t.Context(), "top", Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	if text, err := os.ReadFile(filepath.Join(root.Layers[1], "opt/tool")); err != nil || string(text) != "top" || len(root.Layers) != 3 {
		t.Errorf("%q %v %v", text, err, root.Layers)
	}
	if err := s.Tag(t.Context(), "top:1", "top:1"); err != nil {
		t.Fatal(err)
	}
	if again, _ := s.Find(t.Context(), "top:1"); len(again.Names) != 2 {
		t.Errorf("names %v", again.Names)
	}
}

// An image on the host shows the host's programs, with its layers below what is
// generated, and so does an image on such an image.
func TestAddLayerOnHost(t *testing.T) {
	s := open(t, Options{Volatile: true})
	addLayer(t, s, LayerOptions{Base: HostName, Names: []string{"first:1"}}, tarDir("opt"), tarFile("opt/first", "1"))
	second := addLayer(t, s, LayerOptions{Base: "first:1", Names: []string{"second:1"}}, tarDir("opt"), tarFile("opt/second", "2"))
	if !second.OnHost {
		t.Fatal("the image is not on the host")
	}
	root, pin, err := s.Resolve(t.Context(), "second:1", Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	host, hostPin, err := s.Resolve(t.Context(), HostName, Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer hostPin.Release()
	if !slices.Equal(root.Binds, host.Binds) || len(root.Layers) != 3 || root.Layers[0] != host.Layers[0] || root.ID != second.ID {
		t.Errorf("%+v", root)
	}
}

// A layer that is refused leaves nothing, and neither does one on a base that is not
// there.
func TestAddLayerRefuses(t *testing.T) {
	s := open(t, Options{Volatile: true})
	for _, o := range []LayerOptions{{Base: "gone:1", Names: []string{"a:1"}}, {Names: []string{"host"}}, {}} {
		if image, err := s.AddLayer(t.Context(), bytes.NewReader(pack(t, tarDir("opt"))), o); err == nil {
			t.Errorf("%+v made %+v", o, image)
		}
	}
	if _, err := s.AddLayer(t.Context(), bytes.NewReader(pack(t, tarFile("../outside", "x"))), LayerOptions{Names: []string{"a:1"}}); err == nil {
		t.Error("a name that leads out was taken")
	}
	if images, err := s.List(t.Context()); len(images) > 0 || err != nil {
		t.Errorf("%v %v", images, err)
	}
}

// A directory of an image is found in one layer only, and never through a link: the
// author of the image would choose what of the host is shown.
func TestPinDirectory(t *testing.T) {
	s := open(t, Options{Volatile: true})
	addLayer(t, s, LayerOptions{Names: []string{"good:1"}}, tarDir("data"), tarDir("data/inner"), tarFile("data/inner/file", "x"))
	addLayer(t, s, LayerOptions{Base: "good:1", Names: []string{"twice:1"}}, tarDir("data"), tarFile("data/more", "x"))
	addLayer(t, s, LayerOptions{Names: []string{"linked:1"}}, tarLink("data", "/etc"), tarLink("way", "/"))
	_, pin, err := s.Resolve(t.Context(), "good:1", Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	dir, err := pin.Directory("good:1", "/data/inner")
	if text, _ := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "x" {
		t.Errorf("%s: %q %v", dir, text, err)
	}
	for ref, path := range map[string]string{"twice:1": "/data", "linked:1": "/data", "good:1": "/../../../etc", "linked:latest": "/data"} {
		if dir, err := pin.Directory(ref, path); err == nil {
			t.Errorf("%s of %s is %s", path, ref, dir)
		}
	}
	if dir, err := pin.Directory("linked:1", "/way/etc"); err == nil {
		t.Errorf("through a link: %s", dir)
	}
}
