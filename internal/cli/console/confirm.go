package console

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// maxAnswer bounds a typed answer.
const maxAnswer = 256

// Agrees asks a person at a terminal; only a written yes counts. Without a terminal it
// asks nothing and returns false.
func (e *Env) Agrees(question string) bool {
	return IsInteractive(e.In) && e.Confirms(question)
}

// Confirms asks at the input, which need not be a terminal; no answer means no.
func (e *Env) Confirms(question string) bool {
	fmt.Fprint(e.Err, question+" [y/N] ")
	answer, _ := bufio.NewReader(io.LimitReader(e.In, maxAnswer)).ReadString('\n')
	if !IsInteractive(e.In) {
		fmt.Fprintln(e.Err) // no newline was typed
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}
