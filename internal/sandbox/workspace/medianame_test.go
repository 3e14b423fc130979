package workspace

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestMediaFileName(t *testing.T) {
	for in, want := range map[string]string{
		"photo.png":                       "input-photo.png",
		"":                                "input-file",
		"...":                             "input-file",
		"../../etc/passwd":                "input-passwd",
		`C:\Users\me\cv.docx`:             "input-cv.docx",
		"-rf":                             "input-rf",
		"--help.txt":                      "input-help.txt",
		".bashrc":                         "input-bashrc",
		"a b\tc\nd.txt":                   "input-a_b_c_d.txt",
		"x\x00y":                          "input-x_y",
		"\x1b[31mred":                     "input-31mred",
		"gpj.\u202etxt":                   "input-gpj._txt",
		"zero\u200bwidth":                 "input-zero_width",
		"$(reboot);`id`.sh":               "input-reboot_id_.sh",
		"bad\xff\xfebytes":                "input-bad_bytes",
		"日本語.png":                         "input-日本語.png",
		"हिन्दी.txt":                      "input-हिन्दी.txt",
		"fullwidth／slash":                 "input-fullwidth_slash",
		"trailing.":                       "input-trailing",
		"dir/":                            "input-file",
		strings.Repeat("n", 300):          "input-" + strings.Repeat("n", 114),
		strings.Repeat("é", 300) + ".png": "input-" + strings.Repeat("é", 55) + ".png",
		"a." + strings.Repeat("x", 300):   "input-a." + strings.Repeat("x", 112),
	} {
		if got := mediaFileName(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzMediaFileName(f *testing.F) {
	for _, s := range []string{"a.png", "../x", "\xff\u202e", strings.Repeat("é.", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := numbered(mediaFileName(in), MaxMediaFiles)
		rest, ok := strings.CutPrefix(got, mediaNamePrefix)
		switch {
		case !ok || rest == "" || !utf8.ValidString(got) || len(got) > maxMediaName+len("-100"):
			t.Errorf("%q became %q", in, got)
		case strings.ContainsAny(got, "/\\ ") || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsGraphic(r) }):
			t.Errorf("%q became %q", in, got)
		case rest[0] == '.' || strings.HasSuffix(got, "."):
			t.Errorf("%q became %q", in, got)
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"files":{"SOUL.md":{"sha256":"00","size":1,"seededAt":"2026-11-15T03:45:00Z"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(data)
		if err != nil {
			return
		}
		for name, e := range m.Files {
			if len(e.SHA256) != 64 || e.Size < 0 || strings.Contains(name, "/") {
				t.Errorf("accepted %q: %+v", name, e)
			}
		}
	})
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\x1bb")
	f.Fuzz(func(t *testing.T, name string) {
		for _, r := range printable(name) {
			if !unicode.IsPrint(r) {
				t.Errorf("%q prints as %q", name, printable(name))
			}
		}
	})
}
