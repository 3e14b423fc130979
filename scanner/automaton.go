package main

import "unicode"

// automaton finds all of its words in a text in one pass, whatever the case of
// ASCII letters.
type automaton struct {
	class [256]byte // of bytes that the words tell apart; 0 is all others
	width int
	next  []int32   // by state and class
	found [][]int32 // the words that end in a state
}

func newAutomaton(words []string) *automaton {
	a := &automaton{width: 1}
	for _, word := range words {
		for i := range len(word) {
			if c := word[i]; a.class[c] == 0 {
				a.class[c] = byte(a.width)
				a.width++
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		a.class[c] = a.class[unicode.ToLower(rune(c))]
	}
	a.grow()
	for i, word := range words {
		a.add(word, int32(i)) //nolint:gosec // there are hundreds
	}
	a.link()
	return a
}

// grow makes a state.
func (a *automaton) grow() int32 {
	state := int32(len(a.found)) //nolint:gosec // as many as the words have bytes
	a.next = append(a.next, make([]int32, a.width)...)
	a.found = append(a.found, nil)
	return state
}

func (a *automaton) at(state int32, class byte) *int32 { return &a.next[int(state)*a.width+int(class)] }

func (a *automaton) add(word string, id int32) {
	state := int32(0)
	for i := range len(word) {
		class := a.class[word[i]]
		if *a.at(state, class) == 0 {
			fresh := a.grow()
			*a.at(state, class) = fresh
		}
		state = *a.at(state, class)
	}
	a.found[state] = append(a.found[state], id)
}

// link fills in where a state goes when no word goes on: to the longest end of
// what was read that a word begins with.
func (a *automaton) link() {
	fallback := make([]int32, len(a.found))
	queue := []int32{0}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for class := range a.width {
			to := a.at(state, byte(class))
			behind := int32(0)
			if state != 0 {
				behind = *a.at(fallback[state], byte(class))
			}
			if *to == 0 {
				*to = behind
				continue
			}
			fallback[*to] = behind
			a.found[*to] = append(a.found[*to], a.found[behind]...)
			queue = append(queue, *to)
		}
	}
}

// each calls visit for each word, with where it ends.
func (a *automaton) each(text string, visit func(word int32, end int)) {
	state := int32(0)
	for i := range len(text) {
		state = a.next[int(state)*a.width+int(a.class[text[i]])]
		for _, word := range a.found[state] {
			visit(word, i+1)
		}
	}
}
