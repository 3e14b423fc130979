package usage

// ledgerState is what one process has read of spent and reserved amounts, from SQLite
// and the journal. Totals are loaded when they are first needed.
type ledgerState struct {
	open    map[string]*record  // reservations under way, by call
	ended   map[string]struct{} // calls that ended in this generation
	loaded  map[scopeKey]*total
	maximum int
}

// total is what is spent and held of one key.
type total struct {
	spent    Charge
	reserved amount
}

// amount is money and tokens.
type amount struct{ microUSD, tokens int64 }

func (a *amount) add(r *record, sign int64) {
	a.microUSD += sign * r.MicroUSD
	a.tokens += sign * r.Tokens.Total()
}

// maxTotals is how many totals a process keeps in memory.
const maxTotals = 1 << 16

func newState() *ledgerState {
	return &ledgerState{open: map[string]*record{}, ended: map[string]struct{}{}, loaded: map[scopeKey]*total{}, maximum: maxTotals}
}

// apply adds one record to the state. A record that ends a reservation
// counts only while that is open, so repeating one changes nothing.
func (i *ledgerState) apply(r *record) {
	switch r.Kind {
	case kindReserve:
		if i.open[r.ID] == nil {
			held := *r
			i.open[r.ID] = &held
			i.hold(r, 1)
		}
	case kindSettle, kindRelease:
		held := i.open[r.ID]
		if held == nil {
			return
		}
		delete(i.open, r.ID)
		i.ended[r.ID] = struct{}{}
		i.hold(held, -1)
		if r.Kind == kindSettle {
			i.spend(r, r.charge())
		}
	case kindCorrect:
		i.spend(r, r.correction())
	}
}

func (i *ledgerState) hold(r *record, sign int64) {
	for _, k := range r.keys() {
		if t := i.loaded[k]; t != nil {
			t.reserved.add(r, sign)
		}
	}
}

func (i *ledgerState) spend(r *record, c Charge) {
	for _, k := range r.keys() {
		if t := i.loaded[k]; t != nil {
			t.spent.add(c)
		}
	}
}

// load adds a total to the state, with what is reserved of it.
func (i *ledgerState) load(k scopeKey, spent Charge) *total {
	if len(i.loaded) >= i.maximum { // all of them can be loaded again
		clear(i.loaded)
	}
	t := &total{spent: spent}
	for _, held := range i.open {
		for _, key := range held.keys() {
			if key == k {
				t.reserved.add(held, 1)
			}
		}
	}
	i.loaded[k] = t
	return t
}

// forget empties the state.
func (i *ledgerState) forget() {
	clear(i.open)
	clear(i.ended)
	clear(i.loaded)
}
