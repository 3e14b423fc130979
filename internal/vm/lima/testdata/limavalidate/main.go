// Command limavalidate reads a Lima file and says what Lima 1.2.2 itself finds wrong with it.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/lima-vm/lima/pkg/limayaml"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = check(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check loads the text with the defaults of Lima and validates it.
func check(text []byte) error {
	y, err := limayaml.Load(text, os.TempDir()+"/lima.yaml")
	if err != nil {
		return err
	}
	return limayaml.Validate(y, true)
}
