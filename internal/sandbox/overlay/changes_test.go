package overlay

import (
	"os"
	"path/filepath"
	"testing"
)

func project() map[string]string {
	return map[string]string{
		"README.md": "hello\n", "same": "same\n", "run.sh": "#!/bin/sh\n", "old/legacy.go": "x\n", "old/deep/er.go": "y\n",
		"src/cart.go": "cart\n", "src/util.go": "util\n", "link": "-> README.md", "stays": "-> src", "swap": "file\n", "dir/one": "1\n", "dir/two": "2\n", "empty/": "",
	}
}

func TestChanges(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.expect(t)
		s.inside(t, `
echo more >> README.md
touch same
chmod 755 run.sh
rm -r old
mkdir -p new/sub; echo a > new/sub/file
ln -sfn /etc/passwd link
ln -s src/cart.go made
rm swap; mkdir swap; echo in > swap/in
rm -r dir; echo now > dir
rmdir empty
`)
		s.expect(t, "modified README.md", "mode run.sh 644 -> 755", "deleted old/", "deleted old/legacy.go", "deleted old/deep/", "deleted old/deep/er.go",
			"added new/", "added new/sub/", "added new/sub/file", "link link -> /etc/passwd", "link made -> src/cart.go",
			"replaced swap/", "added swap/in", "replaced dir", "deleted dir/one", "deleted dir/two", "deleted empty/")
	})
}

// A change that is undone inside is none.
func TestChangesThatAreUndone(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `
echo more >> README.md; printf 'hello\n' > README.md
mv src tmp 2>/dev/null || { cp -a src tmp; rm -r src; }
mv tmp src 2>/dev/null || { cp -a tmp src; rm -r tmp; }
rm dir/one; printf '1\n' > dir/one
chmod 755 run.sh; chmod 644 run.sh
rm link; ln -s README.md link
rm -r old; mkdir -p old/deep; printf 'x\n' > old/legacy.go; printf 'y\n' > old/deep/er.go
`)
		s.expect(t)
	})
}

func TestOpenReadsWhatTheSandboxHas(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `echo more >> README.md; rm src/util.go; mkdir -p a/b; echo c > a/b/c; ln same again; rm -r old; mkdir old; echo n > old/n`)
		for path, want := range map[string]string{"README.md": "hello\nmore\n", "a/b/c": "c\n", "again": "same\n", "old/n": "n\n", "src/cart.go": "cart\n"} {
			if got := s.content(t, path); got != want {
				t.Errorf("Open(%q) = %q, want %q", path, got, want)
			}
		}
		for _, path := range []string{"src/util.go", "old/legacy.go", "link", "stays/cart.go", "src", "../base/same", "/etc/passwd", "", ".", "a/../same"} {
			if file, err := s.Open(path); err == nil {
				closeFile(file)
				t.Errorf("Open(%q) succeeded", path)
			}
		}
	})
}

func TestBaseIsUntouched(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		before := snapshot(t, s.Base)
		s.inside(t, `echo x >> README.md; chmod 777 src; rm -r old dir; "$HELPER" xattr same user.x y; ln same other; touch -d 2001-01-01 run.sh`)
		_ = s.lines(t)
		if after := snapshot(t, s.Base); after != before {
			t.Errorf("the base changed:\n%s\nwas:\n%s", after, before)
		}
	})
}

// snapshot lists bytes, modes and times of a tree.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	text := ""
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		text += path + " " + info.Mode().String() + " " + info.ModTime().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}
		text += "\n"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A directory that root's mount renames is listed file by file.
func TestRenamedDirectory(t *testing.T) {
	for _, w := range ways() {
		if w.name != "root" {
			continue
		}
		s := newStage(t, w, map[string]string{"a/x": "x\n", "a/sub/y": "y\n", "a/z": "z\n", "b/old": "old\n"}, nil)
		s.inside(t, `mv a c; echo more >> c/x; rm c/z; mkdir c/new; mv c/sub c/sub2`)
		s.expect(t, "deleted a/", "deleted a/x", "deleted a/z", "deleted a/sub/", "deleted a/sub/y", "renamed c/ from a", "added c/x",
			"added c/new/", "renamed c/sub2/ from a/sub", "renamed c/sub2/y from a/sub/y")
		if got := s.content(t, "c/sub2/y"); got != "y\n" {
			t.Errorf("a renamed file has %q", got)
		}
		s.inside(t, `rm -r b; mv c b`)
		s.expect(t, "deleted a/", "deleted a/x", "deleted a/z", "deleted a/sub/", "deleted a/sub/y", "added b/x", "added b/new/",
			"renamed b/sub2/ from a/sub", "renamed b/sub2/y from a/sub/y", "deleted b/old")
		s.inside(t, `mv b/sub2 b/sub; mv b a; mkdir b; printf 'old\n' > b/old`)
		s.expect(t, "modified a/x", "deleted a/z", "added a/new/")
	}
}
