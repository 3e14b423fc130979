package rule

import (
	"net/url"
	"strings"
)

// pathPattern is a pattern of paths, by segments. * stands for a part of a
// segment, ** for any number of segments.
type pathPattern struct {
	text     string
	segments []string
}

const anySegments = "**"

func newPathPattern(text string) pathPattern { return pathPattern{text, strings.Split(text, "/")} }

// everything reports whether every path fits, however it is spelled.
func (p pathPattern) everything() bool { return p.text == "/**" }

// match reports whether a path fits. It takes time in proportion to the product
// of both lengths at most.
func (p pathPattern) match(path string) bool {
	return p.everything() || wildcard(p.segments, strings.Split(path, "/"), anySegments, segmentMatches)
}

func segmentMatches(pattern, segment string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == segment
	}
	return wildcard([]byte(pattern), []byte(segment), '*', func(p, s byte) bool { return p == s })
}

// wildcard matches a pattern in which star stands for any number of elements.
// Only the last star is ever tried again, which is enough.
func wildcard[T comparable](pattern, text []T, star T, same func(p, s T) bool) bool {
	i, j, lastStar, resume := 0, 0, -1, 0
	for j < len(text) {
		switch {
		case i < len(pattern) && pattern[i] == star:
			lastStar, resume = i, j
			i++
		case i < len(pattern) && same(pattern[i], text[j]):
			i++
			j++
		case lastStar >= 0:
			resume++
			i, j = lastStar+1, resume
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == star {
		i++
	}
	return i == len(pattern)
}

// isAmbiguous reports whether servers may read a path in several ways: with dot
// segments, empty ones, parameters, backslashes, or characters that are encoded
// and mean something.
func isAmbiguous(path string) bool {
	if _, err := url.PathUnescape(path); err != nil || strings.ContainsAny(path, "\\;") || strings.Contains(path, "//") {
		return true
	}
	lower := strings.ToLower(path)
	for _, encoded := range []string{"%2e", "%2f", "%5c", "%25", "%3b", "%00", "%3f", "%23"} {
		if strings.Contains(lower, encoded) {
			return true
		}
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}
