package usage

// An upstream's figures are accepted up to so many times what was reserved, and
// always up to the floor: estimates of images and tools may be far off, but a
// faulty upstream must not use up a budget.
const (
	believedTimes = 4
	believedFloor = 100_000
)

// settlement is the record that ends a reservation.
func (l *Ledger) settlement(held *record, o Outcome) *record {
	end := *held
	end.Kind, end.Flags = kindSettle, 0
	end.Status = int64(o.Status)
	end.Model = o.Model
	if end.Model == "" || len(end.Model) > maxKey {
		end.Model = held.ModelAsked
	}
	end.Tokens = plausibleTokens(held.Tokens, o.Tokens)
	if o.Estimated || end.Tokens != o.Tokens {
		end.Flags |= flagEstimated
	}
	l.price(held, &end, &o)
	return &end
}

// price sets the cost: what the upstream reported, else the price of the model
// that answered, else of the one that was asked.
func (l *Ledger) price(held, end *record, o *Outcome) {
	price, priced := l.options.Prices.Of(end.Model)
	if !priced {
		price, priced = l.options.Prices.Of(held.ModelAsked)
	}
	t := &end.Tokens
	end.MicroUSD = price.at(t.Input + t.CachedInput + t.CacheWrite).longCache(o.LongCache).cost(*t)
	switch {
	case o.UpstreamCost != nil && *o.UpstreamCost >= 0 && isPlausible(held, *o.UpstreamCost):
		end.MicroUSD = *o.UpstreamCost
	case !priced && end.Tokens != (Tokens{}):
		end.Flags |= flagUnpriced
	}
}

// isPlausible reports whether a reported cost is near what was reserved. An
// unpriced model reserved no money, so any figure is accepted.
func isPlausible(held *record, told int64) bool {
	const floor = 10_000_000 // ten dollars
	return told <= max(floor, believedTimes*held.MicroUSD)
}

// plausibleTokens returns the tokens that are charged for an upstream's figures. If
// one is below zero the reservation is charged.
func plausibleTokens(held, told Tokens) Tokens {
	for _, n := range []int64{told.Input, told.CachedInput, told.CacheWrite, told.Output, told.Reasoning} {
		if n < 0 {
			return held
		}
	}
	most := max(believedFloor, believedTimes*held.Total())
	capped := func(n int64) int64 { return min(n, most) }
	return Tokens{capped(told.Input), capped(told.CachedInput), capped(told.CacheWrite), capped(told.Output), capped(told.Reasoning)}
}
