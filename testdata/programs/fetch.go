//go:build ignore

// Prints what a web server answers. It is linked without any C library.
package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil {
		panic(err)
	}
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		panic(err)
	}
}
