package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
)

// MaxPoints bounds a series.
const MaxPoints = 2000

// ErrTooManyPoints means that a series has more than MaxPoints.
var ErrTooManyPoints = errhint.With(fmt.Errorf("the series has more than %d points", MaxPoints), "choose a larger bucket, or a shorter time")

// Point is what was spent within a bucket of time, by one key.
type Point struct {
	At          time.Time
	Key         string
	Calls       int64
	Tokens      int64
	MicroUSD    int64
	Provisional int64
	Unpriced    int64
}

// seriesColumns are what a series can be split by.
var seriesColumns = map[string]string{"": "''", "account": "account", "agent": "agent", "model": "model"}

// Series returns what was spent over time, in buckets of a length and by a column:
// "", account, agent or model. Buckets without calls are left out.
func (l *Ledger) Series(ctx context.Context, f Filter, by string, bucket time.Duration) ([]Point, error) {
	column, ok := seriesColumns[by]
	if !ok || bucket < time.Minute {
		return nil, fmt.Errorf("a series by %.20q in buckets of %v", by, bucket)
	}
	if err := l.Flush(ctx); err != nil {
		return nil, err
	}
	where, args := f.where()
	args = append([]any{bucket.Milliseconds(), bucket.Milliseconds()}, args...)
	rows, err := l.options.DB.QueryContext(ctx, `SELECT at_ms / ? * ? AS at, `+column+` AS key, count(*), sum(input + cached_input + cache_write + output),
		sum(ifnull(billed, cost)), sum(billed IS NULL), sum(priced = 0) FROM usage_calls`+where+" GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?", append(args, MaxPoints+1)...)
	if err != nil {
		return nil, l.options.DB.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	points := []Point{}
	for rows.Next() {
		var p Point
		var at int64
		if err := rows.Scan(&at, &p.Key, &p.Calls, &p.Tokens, &p.MicroUSD, &p.Provisional, &p.Unpriced); err != nil {
			return nil, l.options.DB.Explain(err)
		}
		p.At = time.UnixMilli(at).UTC()
		points = append(points, p)
	}
	if len(points) > MaxPoints {
		return nil, ErrTooManyPoints
	}
	return points, l.options.DB.Explain(rows.Err())
}
