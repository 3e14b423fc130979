package machine_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/machinetest"
)

func TestFirst(t *testing.T) {
	g := machinetest.Start(t)
	m := g.Machine(t, nil)
	if err := m.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := m.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", info)
	var out, errs bytes.Buffer
	res, err := m.Exec(t.Context(), &machine.Command{Shell: "cat; echo err >&2; exit 3", Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &errs})
	t.Logf("%+v %v %q %q", res, err, out.String(), errs.String())
	if err != nil || res.ExitCode != 3 || out.String() != "hello" || errs.String() != "err\n" {
		t.Fail()
	}
}
