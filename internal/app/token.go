package app

import "github.com/atoll-run/atoll/internal/llm/token"

// Tokens is where session tokens of the shared proxy are minted and verified.
func (a *App) Tokens() *token.Desk { return token.NewDesk(a.db, nil) }
