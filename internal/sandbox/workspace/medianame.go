package workspace

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	mediaNamePrefix = "input-"
	// maxMediaName keeps names far below what any file system allows, also
	// with a number added.
	maxMediaName = 120
	// maxMediaExt is the longest ending that is kept when a name is cut.
	maxMediaExt = 16
)

// mediaFileName makes a file name out of what a sender called a file: only
// letters, marks, digits and . _ - remain, it starts with a fixed prefix, and it
// is short. Everything else, above all separators, control and direction
// characters, becomes an underscore.
func mediaFileName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.ToValidUTF8(name, "_")
	name = strings.Map(mediaRune, name)
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	name = strings.TrimLeft(name, ".-_")
	name = strings.TrimRight(name, "._")
	if name == "" {
		name = "file"
	}
	return mediaNamePrefix + shorten(name)
}

func mediaRune(r rune) rune {
	switch {
	case r == '.' || r == '_' || r == '-', unicode.In(r, unicode.L, unicode.M, unicode.Nd):
		return r
	}
	return '_'
}

// shorten cuts the middle out of a long name, so that its ending stays.
func shorten(name string) string {
	limit := maxMediaName - len(mediaNamePrefix)
	if len(name) <= limit {
		return name
	}
	ext := filepath.Ext(name)
	if len(ext) > maxMediaExt {
		ext = ""
	}
	stem := name[:limit-len(ext)]
	for !utf8.ValidString(stem) {
		stem = stem[:len(stem)-1]
	}
	return stem + ext
}

// numbered tells a name from the ones like it: a.png, a-1.png, a-2.png.
func numbered(name string, n int) string {
	if n == 0 {
		return name
	}
	ext := filepath.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
}
