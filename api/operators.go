package api

import "time"

// Doctor is what was found about the gateway's machine.
type Doctor struct {
	Checks []DoctorCheck `json:"checks"`
}

// DoctorCheck is one finding, and the command that mends it.
type DoctorCheck struct {
	Name   string `json:"name"`
	Status string `json:"status" enum:"ok|warning|failed"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// Tokens are the tokens of the gateway, without their secrets.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}

// Token is one of them.
type Token struct {
	ID       string    `json:"id"`
	Name     string    `json:"name,omitempty"`
	Scope    string    `json:"scope"`
	Account  string    `json:"account,omitempty" doc:"That it is bound to; absent is none."`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"`
	LastUsed time.Time `json:"lastUsed,omitzero"`
	Revoked  time.Time `json:"revoked,omitzero"`
}
