package access

import "time"

// Size is how many peers are remembered.
func (t *Throttle) Size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.peers)
}

// Prove is Proof.check.
func Prove(p *Proof, nonce string, now time.Time) ([]byte, error) { return p.check(nonce, now) }
