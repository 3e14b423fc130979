package console

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
)

func TestPickTakesTheOneThatBeginsSo(t *testing.T) {
	all := []Named{{"box-agent-main-1", []string{"agent-main-1", "agent:main"}}, {"box-agent-work-2", []string{"agent-work-2", "agent:work"}}, {"box", nil}}
	for word, want := range map[string]string{
		"box": "box", "box-agent-m": "box-agent-main-1", "agent-w": "box-agent-work-2", "agent:main": "box-agent-main-1", "agent:w": "box-agent-work-2",
	} {
		if got, err := Pick("sandbox", word, all); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", word, got, err, want)
		}
	}
	for _, word := range []string{"", "x", "box-agent-main-11"} {
		if got, err := Pick("sandbox", word, all); !errors.Is(err, ErrNoneNamed) {
			t.Errorf("%q is %q, %v", word, got, err)
		}
	}
}

func TestPickListsTheCandidates(t *testing.T) {
	_, err := Pick("run", "run-", []Named{{Name: "run-2"}, {Name: "run-1"}})
	if err == nil || err.Error() != `run "run-" could be any of run-1, run-2` || Code(err) != ExitUsage || errhint.Of(err) == "" {
		t.Errorf("got %v", err)
	}
	var many []Named
	for i := range mostCandidates + 2 {
		many = append(many, Named{Name: fmt.Sprint("run-", i)})
	}
	if _, err := Pick("run", "run", many); err == nil || !strings.HasSuffix(err.Error(), " and 2 more") {
		t.Errorf("got %v", err)
	}
}
