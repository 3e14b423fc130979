package shell

import "strings"

// Match returns the first pattern that the words of a plain command match.
//
// A pattern is a list of words separated by blanks. Each must equal the word at
// its place, and there may be no words left over, except:
//   - A last word of "*" stands for any further words, also for none: "gh *"
//     matches gh and gh pr list, "gh" only gh.
//   - Within a word, "*" stands for any characters of that one word: "--to=*".
//
// In the first word "*" never stands for a slash, so that a pattern reaches a
// program by path only where it spells out the directory: "gh *" matches
// neither ./gh nor /tmp/gh, and "*" matches every bare name.
//
// There is no quoting in patterns, letters match in their case only, and an
// empty pattern matches nothing.
func Match(patterns, argv []string) (pattern string, ok bool) {
	for _, pattern := range patterns {
		words := strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune(blanks, r) })
		if matchWords(words, argv) {
			return pattern, true
		}
	}
	return "", false
}

func matchWords(pattern, argv []string) bool {
	if len(pattern) == 0 || len(argv) == 0 || !matchProgram(pattern[0], argv[0]) {
		return false
	}
	for i, p := range pattern[1:] {
		i++
		if p == "*" && i == len(pattern)-1 {
			return true
		}
		if i >= len(argv) || !matchWord(p, argv[i]) {
			return false
		}
	}
	return len(argv) == len(pattern) || len(pattern) == 1 && pattern[0] == "*"
}

// matchProgram is matchWord for the command word: as many slashes as the
// pattern has, no more.
func matchProgram(pattern, name string) bool {
	return name != "" && strings.Count(pattern, "/") == strings.Count(name, "/") && matchWord(pattern, name)
}

// matchWord compares a word with a pattern in which "*" is any text. What
// stands between two stars is taken at its first occurrence: that leaves most
// for the rest, so nothing need be tried twice.
func matchWord(pattern, word string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == word
	}
	if !strings.HasPrefix(word, first) {
		return false
	}
	word = word[len(first):]
	for {
		middle, more, starred := strings.Cut(rest, "*")
		if !starred {
			return strings.HasSuffix(word, rest)
		}
		at := strings.Index(word, middle)
		if at < 0 {
			return false
		}
		word, rest = word[at+len(middle):], more
	}
}
