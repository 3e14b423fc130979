package logid_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/logid"
)

func TestIDsAreInTheLines(t *testing.T) {
	var out bytes.Buffer
	h := logid.NewHandler(slog.NewTextHandler(&out, nil))
	log := slog.New(logid.NewHandler(h)).With("part", "x")
	ctx := logid.With(logid.With(logid.With(t.Context(), "request", "req-1"), "run", "old"), "run", "run-1")
	for _, c := range []struct {
		write func()
		want  string
	}{
		{func() { log.InfoContext(ctx, "made") }, "part=x request=req-1 run=run-1\n"},
		{func() { log.WarnContext(ctx, "made", "run", "own") }, "part=x run=own request=req-1\n"},
		{func() { log.InfoContext(logid.Copy(t.Context(), ctx), "made") }, "request=req-1 run=run-1\n"},
		{func() { log.Error("alone") }, "msg=alone part=x\n"},
		{func() { log.DebugContext(ctx, "made") }, ""},
	} {
		out.Reset()
		if c.write(); !strings.HasSuffix(out.String(), c.want) || c.want == "" && out.Len() > 0 {
			t.Errorf("%q, want the end %q", out.String(), c.want)
		}
	}
	if w, e := h.Lines(); w != 1 || e != 1 {
		t.Errorf("%d warnings and %d errors", w, e)
	}
	if logid.Of(ctx, "run") != "run-1" || logid.Of(ctx, "task") != "" || logid.With(t.Context(), "run", "") != t.Context() {
		t.Error("the ids of a context")
	}
}
