package usage

// RotateAt sets the size at which a ledger replaces the journal.
func RotateAt(l *Ledger, size int64) { l.rotateAt = size }

// Generation is which journal a ledger has open.
func Generation(l *Ledger) int64 { return l.journal.head.generation }

// ReadAll reads records of hostile bytes, for fuzzing.
func ReadAll(b []byte) (records, used int) {
	var r record
	for {
		n, err := next(b[used:], &r)
		if err != nil {
			return records, used
		}
		records++
		used += n
		if again := r.appendTo(nil); len(again) > 2*n+64 {
			panic("a record grew")
		}
	}
}

// Sample is two whole records.
func Sample() []byte {
	r := record{Kind: kindSettle, ID: "a", Owner: "o", Subject: Subject{"r", "s", "a", "c"}, Day: "d", MicroUSD: -5, Tokens: Tokens{Input: 1 << 40}}
	return r.appendTo(r.appendTo(nil))
}
