package config

import "github.com/atoll-run/atoll/internal/config/secretvalue"

// Secret is a value that must never be printed, or a reference to where it is kept.
type Secret = secretvalue.Secret

// SecretRef says where a secret is kept.
type SecretRef = secretvalue.SecretRef

// NewSecret is a secret that is at hand.
func NewSecret(value string) *Secret { return secretvalue.NewSecret(value) }
