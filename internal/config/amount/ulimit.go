package amount

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Ulimit is one entry of docker.ulimits: a string, a number, or soft and hard.
type Ulimit struct {
	Text       string // set when written as a string or number
	Number     bool
	Soft, Hard *int64 // set when written as an object
}

// ulimitPair is the object form.
type ulimitPair struct {
	Soft *int64 `json:"soft,omitzero" min:"-1" doc:"Limit that holds; a process may raise it up to hard."`
	Hard *int64 `json:"hard,omitzero" min:"-1" doc:"Limit that cannot be raised."`
}

// Forms returns a value of each form that the file may have.
func (Ulimit) Forms() []any { return []any{"", int64(0), ulimitPair{}} }

// Values returns the limits; -1 is no limit. One number alone is both.
func (u Ulimit) Values() (soft, hard int64, err error) {
	return SoftHard(u.Text, u.Soft, u.Hard)
}

// MarshalJSON writes the limit as the file did.
func (u Ulimit) MarshalJSON() ([]byte, error) {
	if u.Soft != nil || u.Hard != nil {
		return json.Marshal(ulimitPair{u.Soft, u.Hard})
	}
	return TextOrNumber(u.Text, u.Number)
}

// UnmarshalJSON reads a string, a number or an object.
func (u *Ulimit) UnmarshalJSON(b []byte) (err error) {
	*u = Ulimit{}
	if jsontext.Value(b).Kind() == '{' {
		var pair ulimitPair
		err = json.Unmarshal(b, &pair, json.RejectUnknownMembers(true))
		u.Soft, u.Hard = pair.Soft, pair.Hard
		return err
	}
	u.Text, u.Number, err = ReadTextOrNumber(b)
	return err
}
