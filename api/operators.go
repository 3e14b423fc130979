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

// CreateToken asks for a token of the gateway.
type CreateToken struct {
	Name    string `json:"name,omitempty" doc:"For people."`
	Scope   string `json:"scope" enum:"admin|operator|operator.approvals|run|read" doc:"What it may do."`
	Account string `json:"account,omitempty" doc:"That it is bound to; without one it sees all. A bound caller's own."`
	Days    int    `json:"days,omitzero" min:"1" max:"365" doc:"Until it ends; 90 if left out."`
}

// CreatedToken is a token that was made.
type CreatedToken struct {
	Text  string `json:"text" doc:"What callers send. It is shown this once: only a hash is kept."`
	Token Token  `json:"token"`
}

// Devices are the devices that showed a key of their own.
type Devices struct {
	Devices []Device `json:"devices"`
}

// Device is one of them. It speaks for the token that it was paired under.
type Device struct {
	ID       string    `json:"id"`
	Token    string    `json:"token" doc:"Id of the token that it was paired under."`
	Client   string    `json:"client"`
	Platform string    `json:"platform"`
	Created  time.Time `json:"created"`
	Paired   bool      `json:"paired" doc:"Otherwise it waits for an admin."`
	LastUsed time.Time `json:"lastUsed,omitzero"`
}
