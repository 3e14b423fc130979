package litellm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/secret"
)

func asStatus(err error) (*StatusError, bool) { return errors.AsType[*StatusError](err) }

// Prices returns what LiteLLM says its models cost. Models without a price are
// left out: they are unpriced, not free.
func (c *Client) Prices(ctx context.Context) (map[string]usage.Price, error) {
	var answer struct {
		Data []struct {
			Name string `json:"model_name"`
			Info struct {
				Input      *float64 `json:"input_cost_per_token"`
				Output     *float64 `json:"output_cost_per_token"`
				CacheRead  *float64 `json:"cache_read_input_token_cost"`
				CacheWrite *float64 `json:"cache_creation_input_token_cost"`
				longPrice
			} `json:"model_info"`
		} `json:"data"`
	}
	if err := c.get(ctx, "/model/info", nil, &answer); err != nil {
		return nil, err
	}
	prices := map[string]usage.Price{}
	for _, m := range answer.Data {
		if m.Info.Input == nil || m.Info.Output == nil || *m.Info.Input <= 0 && *m.Info.Output <= 0 {
			continue
		}
		p := usage.Price{Input: usage.PerToken(*m.Info.Input), Output: usage.PerToken(*m.Info.Output)}
		p.CachedInput, p.CacheWrite = p.Input, p.Input
		if m.Info.CacheRead != nil {
			p.CachedInput = usage.PerToken(*m.Info.CacheRead)
		}
		if m.Info.CacheWrite != nil {
			p.CacheWrite = usage.PerToken(*m.Info.CacheWrite)
		}
		p.Long = m.Info.long(&p)
		if known, twice := prices[m.Name]; twice { // several deployments: the dearest, for each
			p = usage.Price{Input: max(p.Input, known.Input), Output: max(p.Output, known.Output),
				CachedInput: max(p.CachedInput, known.CachedInput), CacheWrite: max(p.CacheWrite, known.CacheWrite), Long: dearer(p.Long, known.Long)}
		}
		prices[m.Name] = p
	}
	return prices, nil
}

// longPrice is LiteLLM's price of calls with much input.
type longPrice struct {
	Input128  *float64 `json:"input_cost_per_token_above_128k_tokens"`
	Output128 *float64 `json:"output_cost_per_token_above_128k_tokens"`
	Input200  *float64 `json:"input_cost_per_token_above_200k_tokens"`
	Output200 *float64 `json:"output_cost_per_token_above_200k_tokens"`
	Read200   *float64 `json:"cache_read_input_token_cost_above_200k_tokens"`
	Write200  *float64 `json:"cache_creation_input_token_cost_above_200k_tokens"`
}

// long is the price of calls with much input. Of what it does not say, writing to a
// cache costs as much as such input, and the rest as in other calls.
func (l *longPrice) long(p *usage.Price) usage.Long {
	switch {
	case l.Input200 != nil:
		return usage.Long{Over: 200_000, Input: usage.PerToken(*l.Input200), Output: perToken(l.Output200, p.Output),
			CachedInput: perToken(l.Read200, p.CachedInput), CacheWrite: perToken(l.Write200, usage.PerToken(*l.Input200))}
	case l.Input128 != nil:
		return usage.Long{Over: 128_000, Input: usage.PerToken(*l.Input128), Output: perToken(l.Output128, p.Output),
			CachedInput: p.CachedInput, CacheWrite: usage.PerToken(*l.Input128)}
	}
	return usage.Long{}
}

func perToken(told *float64, otherwise int64) int64 {
	if told == nil {
		return otherwise
	}
	return usage.PerToken(*told)
}

// dearer is the price of two deployments for calls with much input.
func dearer(a, b usage.Long) usage.Long {
	if a.Over == 0 || b.Over == 0 {
		if a.Over == 0 {
			return b
		}
		return a
	}
	return usage.Long{Over: min(a.Over, b.Over), Input: max(a.Input, b.Input), CachedInput: max(a.CachedInput, b.CachedInput),
		CacheWrite: max(a.CacheWrite, b.CacheWrite), Output: max(a.Output, b.Output)}
}

// RunKey is a virtual key that one run has for itself. It is a secret.Source.
type RunKey struct {
	client *Client
	alias  string
	value  secret.Value
	Hash   string // how spend logs name it
}

// KeyRequest limits a run's key as the run is limited.
type KeyRequest struct {
	Run      string
	Account  string
	MicroUSD int64 // 0 is no limit
	Life     time.Duration
	Models   []string // exact names; none is all
}

// MakeRunKey makes a key. It ends by itself after its life, so a crash leaves
// nothing that works for long.
func (c *Client) MakeRunKey(ctx context.Context, r KeyRequest) (*RunKey, error) {
	if r.Run == "" || r.Life <= 0 {
		return nil, errors.New("a run's key needs a run and a life")
	}
	ask := map[string]any{
		"key_alias": aliasOf(r.Run), "duration": fmt.Sprintf("%ds", int64((r.Life+time.Second-1)/time.Second)), "models": r.Models,
		"key_type": "llm_api", "metadata": map[string]string{"atoll_run": r.Run, "atoll_account": r.Account},
	}
	if r.Models == nil {
		ask["models"] = []string{}
	}
	if r.MicroUSD > 0 {
		ask["max_budget"] = float64(r.MicroUSD) / 1e6
	}
	var answer struct {
		Key   string `json:"key"`
		Token string `json:"token_id"`
	}
	if err := c.post(ctx, "/key/generate", ask, &answer); err != nil {
		return nil, err
	}
	if answer.Key == "" {
		return nil, errors.New("LiteLLM: POST /key/generate: the answer holds no key")
	}
	return &RunKey{client: c, alias: aliasOf(r.Run), value: secret.New(answer.Key), Hash: answer.Token}, nil
}

// Name names the key for messages.
func (k *RunKey) Name() string { return "virtual key " + k.alias }

// Read returns the key.
func (k *RunKey) Read(context.Context) (secret.Value, error) {
	if k.value.IsEmpty() {
		return secret.Value{}, fmt.Errorf("%s is deleted", k.Name())
	}
	return secret.New(k.value.Reveal()), nil
}

// Delete ends the key. One that is gone already is no error.
func (k *RunKey) Delete(ctx context.Context) error {
	if k.value.IsEmpty() {
		return nil
	}
	err := k.client.deleteKeys(ctx, map[string]any{"keys": []string{k.value.Reveal()}})
	if err == nil {
		k.value.Wipe()
	}
	return err
}

// DeleteRunKey ends the key of a run whose maker has died. That there is none is
// no error.
func (c *Client) DeleteRunKey(ctx context.Context, run string) error {
	return c.deleteKeys(ctx, map[string]any{"key_aliases": []string{aliasOf(run)}})
}

func aliasOf(run string) string { return "atoll-" + run }

func (c *Client) deleteKeys(ctx context.Context, which map[string]any) error {
	var answer struct{}
	err := c.post(ctx, "/key/delete", which, &answer)
	if e, ok := asStatus(err); ok && e.Status == http.StatusNotFound {
		return nil
	}
	return err
}
