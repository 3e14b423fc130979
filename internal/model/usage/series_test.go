package usage_test

import (
	"errors"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/model/usage"
)

// A series sums calls by bucket and key, and has a bound.
func TestSeries(t *testing.T) {
	var o usage.Options
	l := openWith(t, state(t), func(given *usage.Options) { o = *given })
	for _, id := range []string{"a", "b"} {
		settle(t, l, call(id, 10, 0), usage.Tokens{Input: 10})
	}
	points, err := l.Series(t.Context(), usage.Filter{}, "model", 24*time.Hour)
	if err != nil || len(points) == 0 || points[0].Key != "m" || points[0].At.Hour() != 0 || points[0].Tokens == 0 || points[0].MicroUSD == 0 {
		t.Fatalf("%+v, %v", points, err)
	}
	if _, err := l.Series(t.Context(), usage.Filter{}, "run; DROP TABLE runs", time.Hour); err == nil {
		t.Error("any column was taken")
	}
	_, err = o.DB.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2100)
		INSERT INTO usage_calls SELECT i * 3600000, 'x' || i, 'r', 's', 'a', 'acme', 'd', 'chat', 'm', 'm', 200, 1, 0, 0, 0, 0, 1, NULL, 1, 0, 0 FROM n`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Series(t.Context(), usage.Filter{Account: "acme"}, "", time.Hour); !errors.Is(err, usage.ErrTooManyPoints) {
		t.Errorf("%v", err)
	}
	if points, err := l.Series(t.Context(), usage.Filter{Account: "acme"}, "", 24*time.Hour); err != nil || len(points) < 80 || len(points) > 90 {
		t.Errorf("%d points, %v", len(points), err)
	}
}
