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

// WatchWebLogin is WebLogins.watch.
func WatchWebLogin(w *WebLogins, id string) (ended <-chan struct{}, stop func()) { return w.watch(id) }
