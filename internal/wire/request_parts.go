package wire

import (
	"encoding/json"
	"errors"
)

// requestParts is a request whose parts are still JSON. Package json analyses a
// whole type before it reads or writes the first value of it, which for Request
// takes longer than a short command does. So only the types of the parts that a
// request has are analysed.
type requestParts struct {
	Op     Op              `json:"op"`
	Exec   json.RawMessage `json:"exec,omitempty"`
	Attach json.RawMessage `json:"attach,omitempty"`
	Target json.RawMessage `json:"target,omitempty"`
	File   json.RawMessage `json:"file,omitempty"`
	Port   json.RawMessage `json:"port,omitempty"`
	Grant  json.RawMessage `json:"grant,omitempty"`

	Identity  json.RawMessage `json:"identity,omitempty"`
	Terminate json.RawMessage `json:"terminate,omitempty"`
}

func (r *Request) split() (*requestParts, error) {
	p := &requestParts{Op: r.Op}
	return p, errors.Join(
		pack(&p.Exec, r.Exec), pack(&p.Attach, r.Attach), pack(&p.Target, r.Target),
		pack(&p.File, r.File), pack(&p.Port, r.Port), pack(&p.Grant, r.Grant), pack(&p.Identity, r.Identity), pack(&p.Terminate, r.Terminate))
}

func (p *requestParts) join() (*Request, error) {
	r := &Request{Op: p.Op}
	return r, errors.Join(
		unpack(p.Exec, &r.Exec), unpack(p.Attach, &r.Attach), unpack(p.Target, &r.Target),
		unpack(p.File, &r.File), unpack(p.Port, &r.Port), unpack(p.Grant, &r.Grant), unpack(p.Identity, &r.Identity), unpack(p.Terminate, &r.Terminate))
}

func pack[T any](text *json.RawMessage, part *T) (err error) {
	if part != nil {
		*text, err = json.Marshal(part)
	}
	return err
}

func unpack[T any](text json.RawMessage, part **T) error {
	if len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, part)
}
