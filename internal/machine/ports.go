package machine

import "errors"

// Why a port was refused.
var (
	// ErrPortTaken is a port that something in the sandbox listens on already.
	ErrPortTaken = errors.New("the port is taken")
	// ErrRefused is a port that nothing in the sandbox listens on.
	ErrRefused = errors.New("connection refused")
)
