package seccomp

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the compiled filters anew")

func TestCompiledIsWhatCompileGives(t *testing.T) {
	for arch := range machines {
		program, err := Compile(arch)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile("compiled/"+arch, listing(program), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := Compiled(arch)
		if err != nil || !bytes.Equal(got, program.Bytes()) {
			t.Errorf("compiled/%s is not what the profile says now (%v): go test ./internal/seccomp -run Compiled -update", arch, err)
		}
	}
	if _, err := Compiled("mips"); err == nil {
		t.Error("an architecture without a guest has a filter")
	}
}

func listing(program Program) []byte {
	var text strings.Builder
	for _, instruction := range program {
		text.WriteString(hex.EncodeToString(Program{instruction}.Bytes()) + "\n")
	}
	return []byte(text.String())
}
