package bench

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/model/proxy"
)

// meter is what a gateway says of itself at /metrics, by series.
type meter map[string]float64

// measure asks the gateway for what it counted.
func (s *gatewayStage) measure(ctx context.Context) (meter, error) {
	url := "http" + strings.TrimPrefix(s.url, "ws") + "/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Close = true
	client := &http.Client{Timeout: time.Minute}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics: %s", answer.Status)
	}
	m := meter{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			m[name] = n
		}
	}
	return m, nil
}

// distribution is that of a histogram's values since an earlier look. Of each
// quantile it tells the upper bound of its bucket, so that it never flatters.
func (m meter) distribution(before meter, histogram, name, unit string, scale float64) Row {
	type bucket struct{ bound, count float64 }
	var buckets []bucket
	for series, count := range m {
		if rest, ok := strings.CutPrefix(series, histogram+`_bucket{le="`); ok {
			bound, _ := strconv.ParseFloat(strings.TrimSuffix(rest, `"}`), 64) // +Inf is a number, too
			buckets = append(buckets, bucket{bound, count - before[series]})
		}
	}
	total := m[histogram+"_count"] - before[histogram+"_count"]
	at := func(q float64) float64 {
		least := -1.0
		for _, b := range buckets {
			if b.count >= q*total && (least < 0 || b.bound < least) {
				least = b.bound
			}
		}
		return least * scale
	}
	return Row{Name: name, Unit: unit, N: int(total), P50: at(0.50), P95: at(0.95), P99: at(0.99)}
}

// Goroutines and descriptors that may be left of a crowd. The gateway keeps
// connections to the model for the next, so many at most.
const (
	goroutinesLeft  = 16
	descriptorsLeft = 16 + proxy.DefaultMaxIdle
	leakPatience    = 30 * time.Second
)

// held is what a gateway has open.
type held struct{ goroutines, descriptors float64 }

func (s *gatewayStage) holds(ctx context.Context) (held, error) {
	m, err := s.measure(ctx)
	return held{m["go_goroutines"], m["process_open_fds"]}, err
}

// left is what a gateway holds beyond what it held before, when it had time to let
// it go.
func (s *gatewayStage) left(ctx context.Context, before held) (held, error) {
	for deadline := time.Now().Add(leakPatience); ; {
		now, err := s.holds(ctx)
		more := held{max(0, now.goroutines-before.goroutines), max(0, now.descriptors-before.descriptors)}
		if err != nil || more.goroutines <= goroutinesLeft && more.descriptors <= descriptorsLeft || time.Now().After(deadline) {
			return more, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return more, ctx.Err()
		}
	}
}
