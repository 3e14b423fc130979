package seccomp

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

var update = flag.Bool("update", false, "write the compiled filters anew")

func TestCompiledIsWhatCompileGives(t *testing.T) {
	for arch := range machines {
		for _, modes := range []Modes{AnyMode, PlainModes} {
			checkCompiled(t, arch, modes)
		}
		checkCompiled(t, arch, browserFile)
	}
	if _, err := Compiled("mips", AnyMode); err == nil {
		t.Error("an architecture without a guest has a filter")
	}
}

func checkCompiled(t *testing.T, arch string, modes Modes) {
	t.Helper()
	program, err := compile(arch, modes)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("compiled/"+arch+"."+string(modes), listing(program), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := Compiled(arch, modes)
	if err != nil || !bytes.Equal(got, program.Bytes()) {
		t.Errorf("compiled/%s.%s is not what the profile says now (%v): go test ./internal/runtime/seccomp -run Compiled -update", arch, modes, err)
	}
}

func listing(program Program) []byte {
	var text strings.Builder
	for _, instruction := range program {
		text.WriteString(hex.EncodeToString(Program{instruction}.Bytes()) + "\n")
	}
	return []byte(text.String())
}

// compile returns our own filter for programs of an architecture; the files in
// compiled hold it. It decides as Profile's rules do.
func compile(arch string, modes Modes) (Program, error) {
	profile, err := describeAny(arch, modes)
	if err != nil {
		return nil, err
	}
	return assemble(profile, arch)
}

// describeAny returns the profile of commands with such modes, or that of browsers.
func describeAny(arch string, modes Modes) (*specs.LinuxSeccomp, error) {
	if modes == browserFile {
		return describeBrowser(arch)
	}
	return describe(arch, modes)
}
