package membudget

import (
	"io"
	"time"
)

// Pace is how slowly a request may arrive: it has Grace, and beyond that the time
// that Rate bytes a second take.
type Pace struct {
	Grace time.Duration
	Rate  int64
}

// The pace of requests, unless another is set.
const (
	DefaultGrace = 10 * time.Second
	DefaultRate  = 32 << 10
)

// OrDefault returns the pace with the default of what is not set.
func (p Pace) OrDefault() Pace {
	if p.Grace == 0 {
		p.Grace = DefaultGrace
	}
	if p.Rate == 0 {
		p.Rate = DefaultRate
	}
	return p
}

// Reader returns r with a deadline that moves on with what has arrived. Deadline is
// called before every read with the time at which the read has to be over.
func (p Pace) Reader(r io.Reader, deadline func(time.Time)) io.Reader {
	return &paced{r: r, pace: p.OrDefault(), start: time.Now(), deadline: deadline}
}

type paced struct {
	r        io.Reader
	pace     Pace
	start    time.Time
	n        int64
	deadline func(time.Time)
}

func (p *paced) Read(b []byte) (int, error) {
	p.deadline(p.start.Add(p.pace.Grace + time.Duration(float64(p.n)/float64(p.pace.Rate)*float64(time.Second))))
	n, err := p.r.Read(b)
	p.n += int64(n)
	return n, err
}
