package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/store"
)

// Devices stores the public keys of devices. A device acts for the token that it
// was paired under and loses access with it; its own token is valid only together
// with a signature of its key.
type Devices struct {
	db     *store.DB
	tokens *TokenStore
	now    func() time.Time
}

// Device is a stored device.
type Device struct {
	ID       string     `json:"id"`
	Token    string     `json:"token"` // that it was paired under
	Client   string     `json:"client"`
	Platform string     `json:"platform"`
	Created  time.Time  `json:"created"`
	Approved *time.Time `json:"approved,omitempty"`
	LastUsed *time.Time `json:"lastUsed,omitempty"`
}

// Connect is a device's request to connect.
type Connect struct {
	Proof       Proof
	Nonce       string // of the challenge that was sent
	From        netip.Addr
	Token       string // text of a gateway's token, or
	DeviceToken string // of the device's own
}

const (
	devicePrefix    = "atolldv_"
	maxDevices      = 1000 // of one token
	maxDeviceTokens = 8    // tokens of one device that are good, the newest
)

// ErrUnknownDevice is returned for an id that no device has.
var ErrUnknownDevice = errors.New("no device has this id")

// NewDevices returns the devices in a token store's database.
func NewDevices(d *TokenStore) *Devices { return &Devices{db: d.db, tokens: d, now: d.now} }

// ConnectDevice authenticates a device by a gateway token or by its own token, and
// counts failures by address. A new device from a loopback address is paired at
// once, any other is ErrNotPaired. own is the device's token, new each time.
func (a *Access) ConnectDevice(ctx context.Context, c *Connect) (caller *Caller, own secret.Value, err error) {
	caller, err = a.guard(c.From, func() (who *Caller, err error) {
		who, own, err = a.Devices.connect(ctx, c)
		return who, err
	})
	return caller, own, err
}

func (d *Devices) connect(ctx context.Context, c *Connect) (*Caller, secret.Value, error) {
	key, err := c.Proof.check(c.Nonce, d.now())
	if err != nil {
		return nil, secret.Value{}, err
	}
	caller, parent, err := d.parent(ctx, c)
	if err != nil {
		return nil, secret.Value{}, err
	}
	row := &Device{ID: c.Proof.ID, Token: parent, Client: c.Proof.ClientID, Platform: c.Proof.Platform}
	var text secret.Value
	err = d.db.Tx(ctx, func(tx *sql.Tx) (err error) {
		text, err = d.pair(ctx, tx, row, key, c.From.Unmap().IsLoopback())
		return err
	})
	switch {
	case err != nil:
		return nil, secret.Value{}, err
	case text.IsEmpty():
		return nil, secret.Value{}, ErrNotPaired
	}
	return caller, text, nil
}

// parent returns the caller that a device acts for, and the token that it was
// paired under.
func (d *Devices) parent(ctx context.Context, c *Connect) (*Caller, string, error) {
	if c.Token != "" {
		caller, parent, err := d.tokens.verifyParent(ctx, c.Token)
		if err == nil || !errors.Is(err, ErrDenied) || c.DeviceToken == "" {
			return caller, parent, err
		}
	}
	return d.byDeviceToken(ctx, c)
}

// verifyParent returns the caller of a token's text, and the name of the token that
// callerOf takes.
func (s *TokenStore) verifyParent(ctx context.Context, text string) (*Caller, string, error) {
	if f := s.matchFixed(text); f != nil {
		return f.caller(), f.epoch, nil
	}
	caller, err := s.Verify(ctx, text)
	if err != nil {
		return nil, "", err
	}
	return caller, caller.Token, nil
}

// byDeviceToken verifies a device's own token.
func (d *Devices) byDeviceToken(ctx context.Context, c *Connect) (*Caller, string, error) {
	id, proof, ok := split(devicePrefix, c.DeviceToken)
	if !ok {
		return nil, "", ErrDenied
	}
	var parent string
	var stored []byte
	err := d.db.QueryRowContext(ctx, "SELECT token, hash FROM gateway_devices WHERE id = ? AND approved_at_ms IS NOT NULL AND hash IS NOT NULL", c.Proof.ID).Scan(&parent, &stored)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, "", ErrDenied
	}
	if err != nil {
		return nil, "", d.db.Explain(err)
	}
	if !containsHash(stored, hash(id, proof)) {
		return nil, "", ErrDenied
	}
	caller, err := d.tokens.callerOf(ctx, parent)
	return caller, parent, err
}

// containsHash compares a hash with every stored one, in constant time.
func containsHash(stored []byte, sum [sha256.Size]byte) (found bool) {
	for ; len(stored) >= sha256.Size; stored = stored[sha256.Size:] {
		found = subtle.ConstantTimeCompare(sum[:], stored[:sha256.Size]) == 1 || found
	}
	return found
}

// callerOf returns the caller of a token that was verified earlier, if it is still
// active.
func (s *TokenStore) callerOf(ctx context.Context, parent string) (*Caller, error) {
	if parent == Socket().Token {
		return Socket(), nil // the kernel had confirmed the owner
	}
	s.mu.Lock()
	f := s.fixedEpoch(parent)
	s.mu.Unlock()
	if f != nil {
		return f.caller(), nil
	}
	k, err := s.lookup(ctx, parent)
	if err != nil {
		return nil, err
	}
	return s.accept(&k.token)
}

// pair stores a device and creates a token for it, or none while it awaits
// approval. A device that connects under another token than before is a new one.
func (d *Devices) pair(ctx context.Context, tx *sql.Tx, row *Device, key []byte, local bool) (secret.Value, error) {
	now := d.now().UnixMilli()
	if err := d.insert(ctx, tx, row, key, now); err != nil {
		return secret.Value{}, err
	}
	if local {
		if _, err := tx.ExecContext(ctx, "UPDATE gateway_devices SET approved_at_ms = ifnull(approved_at_ms, ?) WHERE id = ?", now, row.ID); err != nil {
			return secret.Value{}, err
		}
	}
	var stored []byte
	err := tx.QueryRowContext(ctx, "SELECT ifnull(hash, x'') FROM gateway_devices WHERE id = ? AND approved_at_ms IS NOT NULL", row.ID).Scan(&stored)
	if errors.Is(err, sql.ErrNoRows) {
		return secret.Value{}, nil
	}
	if err != nil {
		return secret.Value{}, err
	}
	id, proof, text := mint(devicePrefix)
	sum := hash(id, proof)
	// Several programs may connect with one device: each keeps its token.
	stored = append(sum[:], stored[:min(len(stored), (maxDeviceTokens-1)*sha256.Size)]...)
	_, err = tx.ExecContext(ctx, "UPDATE gateway_devices SET hash = ?, last_used_at_ms = ? WHERE id = ?", stored, now, row.ID)
	return secret.New(text), err
}

func (d *Devices) insert(ctx context.Context, tx *sql.Tx, row *Device, key []byte, now int64) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM gateway_devices WHERE id = ? AND token <> ?", row.ID, row.Token); err != nil {
		return err
	}
	// The oldest device that awaits approval is removed first, so that unknown peers
	// cannot fill the table.
	if _, err := tx.ExecContext(ctx, `DELETE FROM gateway_devices WHERE token = ?1 AND id <> ?2 AND id IN
		(SELECT id FROM gateway_devices WHERE token = ?1 ORDER BY approved_at_ms IS NOT NULL DESC, created_at_ms DESC, id LIMIT -1 OFFSET ?3)`,
		row.Token, row.ID, maxDevices-1); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO gateway_devices (id, public_key, token, client, platform, created_at_ms) VALUES (?,?,?,?,?,?)
		ON CONFLICT (id) DO UPDATE SET client = excluded.client, platform = excluded.platform`, row.ID, key, row.Token, row.Client, row.Platform, now)
	return err
}

// Approve pairs a device that awaits approval.
func (d *Devices) Approve(ctx context.Context, id string) error {
	return d.change(ctx, id, "UPDATE gateway_devices SET approved_at_ms = ifnull(approved_at_ms, ?2) WHERE id = ?1")
}

// Remove deletes a device; its token is no longer valid.
func (d *Devices) Remove(ctx context.Context, id string) error {
	return d.change(ctx, id, "DELETE FROM gateway_devices WHERE id = ?1 AND ?2 > 0")
}

func (d *Devices) change(ctx context.Context, id, query string) error {
	if len(id) != 2*sha256.Size {
		return fmt.Errorf("%w: %.80s", ErrUnknownDevice, id)
	}
	result, err := d.db.ExecContext(ctx, query, id, d.now().UnixMilli())
	if err != nil {
		return d.db.Explain(err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, fmt.Errorf("%w: %s", ErrUnknownDevice, id))
	}
	return nil
}

// List returns the devices, the newest first.
func (d *Devices) List(ctx context.Context) (all []Device, err error) {
	rows, err := d.db.QueryContext(ctx, `SELECT id, token, client, platform, created_at_ms, approved_at_ms, last_used_at_ms
		FROM gateway_devices ORDER BY created_at_ms DESC, id LIMIT 10000`)
	if err != nil {
		return nil, d.db.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var v Device
		var created int64
		var approved, used sql.NullInt64
		if err := rows.Scan(&v.ID, &v.Token, &v.Client, &v.Platform, &created, &approved, &used); err != nil {
			return nil, d.db.Explain(err)
		}
		v.Created, v.Approved, v.LastUsed = time.UnixMilli(created), timeOf(approved), timeOf(used)
		all = append(all, v)
	}
	return all, d.db.Explain(rows.Err())
}
