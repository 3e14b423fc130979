package access

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/secret/tokencache"
)

// Rotate creates a token with the same rights and ends the old one after grace, so
// that its users have time to change. A life of 0 is that of the old one.
func (s *TokenStore) Rotate(ctx context.Context, id string, life, grace time.Duration) (secret.Value, *Token, error) {
	found, err := s.read(ctx, "WHERE id = ?", id)
	if err != nil {
		return secret.Value{}, nil, err
	}
	if len(found) == 0 {
		return secret.Value{}, nil, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	old := &found[0].token
	if state := old.State(s.now()); state != tokencache.Active {
		return secret.Value{}, nil, fmt.Errorf("token %s is %s: create another", id, state)
	}
	spec := old.Spec
	if spec.Life = life; life == 0 {
		spec.Life = old.Expires.Sub(old.Created)
	}
	spec.E2B = isE2B(id)
	text, made, err := s.Create(ctx, spec)
	if err != nil {
		return secret.Value{}, nil, err
	}
	return text, made, s.revokeAt(ctx, id, s.now().Add(grace))
}

// revokeAt ends a token at a time, unless it ends before.
func (s *TokenStore) revokeAt(ctx context.Context, id string, at time.Time) error {
	_, err := s.db.ExecContext(ctx, "UPDATE gateway_tokens SET revoked_at_ms = min(ifnull(revoked_at_ms, ?), ?) WHERE id = ?", at.UnixMilli(), at.UnixMilli(), id)
	s.recent.Delete(id)
	return s.db.Explain(err)
}
