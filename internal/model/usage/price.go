package usage

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
)

// Price is what a million tokens cost, in millionths of a dollar each.
type Price struct {
	Input, CachedInput, CacheWrite, Output int64
	Long                                   Long
}

// Long is what a million tokens cost in a call with more than Over tokens of input.
// Over 0 is no such price.
type Long struct{ Over, Input, CachedInput, CacheWrite, Output int64 }

// at returns the price of a call with so many tokens of input.
func (p Price) at(input int64) Price {
	if l := p.Long; l.Over > 0 && input > l.Over {
		return Price{Input: max(p.Input, l.Input), CachedInput: max(p.CachedInput, l.CachedInput), CacheWrite: max(p.CacheWrite, l.CacheWrite), Output: max(p.Output, l.Output)}
	}
	return p
}

// maxPrice keeps a mistyped price from overflowing a sum: a million dollars for
// a million tokens.
const maxPrice = 1e12

// PerMillion converts dollars for a million tokens, as price lists have them.
func PerMillion(dollars float64) int64 { return toPrice(dollars * 1e6) }

// PerToken converts dollars for one token, as LiteLLM has them.
func PerToken(dollars float64) int64 { return toPrice(dollars * 1e12) }

func toPrice(v float64) int64 {
	if !(v > 0) { // also what is no number
		return 0
	}
	return int64(math.Round(min(v, maxPrice)))
}

// cost returns the cost of a call, rounded up once: a thousand cheap calls are not
// free.
func (p Price) cost(t Tokens) int64 {
	var hi, lo uint64
	for _, part := range [...]struct{ tokens, price int64 }{
		{t.Input, p.Input}, {t.CachedInput, p.CachedInput}, {t.CacheWrite, p.CacheWrite}, {t.Output, p.Output},
	} {
		h, l := bits.Mul64(uint64(max(part.tokens, 0)), uint64(max(part.price, 0)))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
	}
	const million = 1_000_000
	lo, carry := bits.Add64(lo, million-1, 0)
	hi += carry
	if hi >= million {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(hi, lo, million)
	return int64(min(quotient, math.MaxInt64))
}

// worst returns the most that so many tokens can cost. Input may turn out to be
// written to a cache, which is dearer than plain input.
func (p Price) worst(input, output int64) int64 {
	dearest := max(p.Input, p.CachedInput, p.CacheWrite)
	return Price{Input: dearest, Output: p.Output}.cost(Tokens{Input: input, Output: output})
}

// longCache returns the price of a call whose input may be written to a cache that
// keeps it for an hour, which providers sell at twice the price of input.
func (p Price) longCache(long bool) Price {
	if long {
		p.CacheWrite = max(p.CacheWrite, 2*p.Input)
	}
	return p
}

// affordable returns how many output tokens money pays for after the input.
func (p Price) affordable(money, input int64) int64 {
	money -= p.worst(input, 0)
	switch {
	case money <= 0:
		return 0
	case p.Output <= 0:
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(uint64(money), 1_000_000)
	if hi >= uint64(p.Output) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(hi, lo, uint64(p.Output))
	return int64(min(quotient, math.MaxInt64))
}

// Prices is a table of prices by model. It may be replaced while in use. The
// zero table has no prices: every call is then counted as unpriced.
type Prices struct {
	table atomic.Pointer[priceTable]
}

type priceTable struct {
	byName   map[string]Price
	patterns []string // those of the names that end in *, the longest first
}

// NewPrices returns a table; later maps go before earlier ones.
func NewPrices(tables ...map[string]Price) *Prices {
	p := &Prices{}
	p.Replace(tables...)
	return p
}

// Replace sets all prices at once; later maps go before earlier ones. A name
// that ends in * is the price of all models that begin so and have none.
func (p *Prices) Replace(tables ...map[string]Price) {
	next := &priceTable{byName: map[string]Price{}}
	for _, t := range tables {
		maps.Copy(next.byName, t)
	}
	for name := range next.byName {
		if strings.HasSuffix(name, "*") {
			next.patterns = append(next.patterns, name)
		}
	}
	slices.SortFunc(next.patterns, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	p.table.Store(next)
}

// Of returns a model's price, and whether it has one.
func (p *Prices) Of(model string) (Price, bool) {
	if p == nil {
		return Price{}, false
	}
	table := p.table.Load()
	if table == nil {
		return Price{}, false
	}
	if price, ok := table.byName[model]; ok {
		return price, true
	}
	for _, pattern := range table.patterns {
		if strings.HasPrefix(model, pattern[:len(pattern)-1]) {
			return table.byName[pattern], true
		}
	}
	return Price{}, false
}
