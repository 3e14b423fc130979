package sshserver

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The limits of what a client says of a command.
const (
	maxEnv      = 32   // variables
	maxEnvBytes = 1024 // of one, with its name
	maxTerm     = 64   // bytes of the kind of terminal
	maxSide     = 4096 // columns or rows of a terminal
)

// acceptedEnv are the variables that a client may set, beside those that begin with LC_:
// they say how to write, not what to run.
var acceptedEnv = []string{"LANG", "LANGUAGE", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TZ"}

// setEnv takes a variable.
func (s *session) setEnv(payload []byte) bool {
	var q struct{ Name, Value string }
	if ssh.Unmarshal(payload, &q) != nil || len(s.command.Env) >= maxEnv || len(q.Name)+len(q.Value) > maxEnvBytes {
		return false
	}
	if !slices.Contains(acceptedEnv, q.Name) && !strings.HasPrefix(q.Name, "LC_") || strings.ContainsAny(q.Name, "=\x00") || strings.Contains(q.Value, "\x00") {
		return false
	}
	s.command.Env = append(s.command.Env, q.Name+"="+q.Value)
	return true
}

// setTerminal gives the command a terminal (RFC 4254, 6.2). The modes are the usual ones,
// whatever the client asks for.
func (s *session) setTerminal(payload []byte) bool {
	var q struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}
	if ssh.Unmarshal(payload, &q) != nil || len(q.Term) > maxTerm || strings.ContainsFunc(q.Term, notTerm) {
		return false
	}
	size := sizeOf(q.Columns, q.Rows)
	s.command.TTY = &size
	if q.Term != "" {
		s.command.Env = append(s.command.Env, "TERM="+q.Term)
	}
	return true
}

// notTerm reports whether a character is not one of a kind of terminal.
func notTerm(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == '=' }

// setSize changes the size of the terminal. Of several sizes the last counts.
func (s *session) setSize(payload []byte) bool {
	var q struct{ Columns, Rows, Width, Height uint32 }
	if ssh.Unmarshal(payload, &q) != nil || s.command.TTY == nil {
		return false
	}
	size := sizeOf(q.Columns, q.Rows)
	if !s.started {
		s.command.TTY = &size
		return true
	}
	select {
	case <-s.resize:
	default:
	}
	s.resize <- size
	return true
}

// sizeOf bounds the size of a terminal; 0 is what terminals usually have.
func sizeOf(columns, rows uint32) Size {
	if columns == 0 || rows == 0 {
		columns, rows = 80, 24
	}
	return Size{Rows: uint16(min(rows, maxSide)), Cols: uint16(min(columns, maxSide))}
}

// clientSignals are the signals of RFC 4254, 6.10, without their prefix.
var clientSignals = []string{"ABRT", "ALRM", "FPE", "HUP", "ILL", "INT", "KILL", "PIPE", "QUIT", "SEGV", "TERM", "USR1", "USR2"}

// sendSignal sends a signal to the command.
func (s *session) sendSignal(ctx context.Context, payload []byte) bool {
	var q struct{ Name string }
	if ssh.Unmarshal(payload, &q) != nil || !slices.Contains(clientSignals, q.Name) {
		return false
	}
	return s.Signal(ctx, s.command.ID, "SIG"+q.Name) == nil
}

// signalName returns the name of a signal as the protocol spells it, if it has one.
func signalName(signal string) (string, bool) {
	name := strings.TrimPrefix(signal, "SIG")
	return name, slices.Contains(clientSignals, name)
}
