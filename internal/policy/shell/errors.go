package shell

import (
	"errors"
	"fmt"
)

// Why a command is not plain. Every error of Plain wraps exactly one of these.
var (
	ErrEmpty        = errors.New("is empty")
	ErrTooLong      = fmt.Errorf("is longer than %d bytes", MaxCommand)
	ErrNotUTF8      = errors.New("is not UTF-8")
	ErrControl      = errors.New("has a control character or line break")
	ErrComment      = errors.New("has a comment")
	ErrQuote        = errors.New("has a quote that is not closed")
	ErrEscape       = errors.New("ends in a backslash")
	ErrExpansion    = errors.New("has an expansion ($)")
	ErrSubstitution = errors.New("has a command or process substitution")
	ErrRedirection  = errors.New("has a redirection")
	ErrPipeline     = errors.New("is a pipeline")
	ErrList         = errors.New("is a list of commands")
	ErrBackground   = errors.New("runs in the background")
	ErrSubshell     = errors.New("has a subshell or an array")
	ErrFunction     = errors.New("defines a function")
	ErrNegation     = errors.New("is negated")
	ErrReserved     = errors.New("begins with a reserved word")
	ErrBuiltin      = errors.New("is a builtin that means nothing outside of a shell")
	ErrAssignment   = errors.New("begins with an assignment")
	ErrGlob         = errors.New("has an unquoted glob character")
	ErrBrace        = errors.New("has a brace expansion")
	ErrTilde        = errors.New("has a tilde expansion")
	ErrHistory      = errors.New("has an unquoted exclamation mark")
	ErrName         = errors.New("names its program with characters other than visible ASCII")
	ErrNotSimple    = errors.New("is not one simple command of literal words")
	ErrDisagree     = errors.New("means different things in POSIX shell and in Bash")
)

// An Error is the reason why a command is not plain, and where it shows.
type Error struct {
	Reason error // one of the errors above
	Offset int   // in bytes from the beginning of the command
}

func (e *Error) Error() string {
	return fmt.Sprintf("command %v (at byte %d)", e.Reason, e.Offset)
}

func (e *Error) Unwrap() error { return e.Reason }

func refuse(reason error, offset int) error {
	return &Error{Reason: reason, Offset: offset}
}
