package vmkeys

import (
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Mode says how the project is worked on.
type Mode string

// The values of mode.
const (
	ModeOverlay Mode = "overlay"
	ModeAuto    Mode = "auto"
	ModeDirect  Mode = "direct"
)

// Docker says whether Docker is installed.
type Docker string

// The values of docker.
const (
	DockerAuto  Docker = "auto"
	DockerTrue  Docker = "true"
	DockerFalse Docker = "false"
)

// Forms returns a value of each form that the file may have.
func (Docker) Forms() []any { return []any{false, ""} }

// MarshalJSON writes true, false or "auto".
func (d Docker) MarshalJSON() ([]byte, error) {
	if d == DockerAuto {
		return []byte(strconv.Quote(string(d))), nil
	}
	return []byte(strconv.FormatBool(d == DockerTrue)), nil
}

// UnmarshalJSON reads true, false or "auto".
func (d *Docker) UnmarshalJSON(b []byte) error {
	switch kind := jsontext.Value(b).Kind(); {
	case kind == 't':
		*d = DockerTrue
	case kind == 'f':
		*d = DockerFalse
	case string(b) == `"auto"`:
		*d = DockerAuto
	default:
		return errors.New(`expected true, false or "auto"`)
	}
	return nil
}
