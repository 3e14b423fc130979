package browserkeys

import (
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// AutoStart says when a browser starts.
type AutoStart string

// The values of autoStart.
const (
	AutoStartTrue  AutoStart = "true"
	AutoStartFalse AutoStart = "false"
	AutoStartLazy  AutoStart = "lazy"
)

// Forms returns a value of each form that the file may have.
func (AutoStart) Forms() []any { return []any{false, ""} }

// MarshalJSON writes true, false or "lazy".
func (a AutoStart) MarshalJSON() ([]byte, error) {
	if a == AutoStartLazy {
		return []byte(strconv.Quote(string(a))), nil
	}
	return []byte(strconv.FormatBool(a == AutoStartTrue)), nil
}

// UnmarshalJSON reads true, false or "lazy".
func (a *AutoStart) UnmarshalJSON(b []byte) error {
	switch kind := jsontext.Value(b).Kind(); {
	case kind == 't':
		*a = AutoStartTrue
	case kind == 'f':
		*a = AutoStartFalse
	case string(b) == `"lazy"`:
		*a = AutoStartLazy
	default:
		return errors.New(`expected true, false or "lazy"`)
	}
	return nil
}
