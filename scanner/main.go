// Atoll-leaks looks for secrets in texts that agents wrote: private keys, tokens
// of services, passwords. It is a program and a module of its own, because what
// it reads is hostile and what it is made of is large: the host runs it confined,
// and links nothing of it.
//
// It reads texts, each as its length in decimal, a line feed and so many bytes,
// and answers each with one line of JSON, in their order: the rules that it
// breaks, and where. It never says what it found.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
)

func main() {
	finder, err := newFinder()
	if err == nil {
		s := &server{find: finder.find, workers: runtime.GOMAXPROCS(0)}
		err = s.serve(bufio.NewReaderSize(os.Stdin, 64<<10), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "atoll-leaks:", err)
		os.Exit(1)
	}
}
