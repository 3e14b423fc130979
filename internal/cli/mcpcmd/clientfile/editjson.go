package clientfile

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config/json5"
)

// JSON edits files of JSON whose servers are members of an object at a key of the
// top. Comments and spelling of the rest stay.
func JSON(key string, typed bool) Editor {
	return func(text []byte, e *Entry) ([]byte, error) {
		if e != nil && typed {
			stdio := *e
			stdio.Type, e = "stdio", &stdio
		}
		if len(bytes.TrimSpace(text)) == 0 {
			if e == nil {
				return text, nil
			}
			text = []byte("{\n}\n")
		}
		f, err := parseServers(text, key)
		if err != nil {
			return nil, err
		}
		after, err := f.edit(e)
		if err != nil {
			return nil, err
		}
		return after, f.check(after, e)
	}
}

// serversFile is a file with what an edit needs to know of it. Offsets are those of the text.
type serversFile struct {
	text    []byte
	key     string
	value   map[string]any
	top     object
	servers *object // nil if the key is not there
	own     span    // of our member, with its name; zero if there is none
}

// object is where an object begins, behind its bracket, and whether it has members.
type object struct {
	begin   int
	members bool
}

type span struct{ from, to int }

func parseServers(text []byte, key string) (*serversFile, error) {
	doc, err := json5.Parse(text)
	if err != nil {
		return nil, err
	}
	f := &serversFile{text: text, key: key}
	if err := json.Unmarshal(doc.JSON, &f.value); err != nil {
		return nil, errors.New("it is no object with a member for each name")
	}
	return f, f.locate(doc)
}

// locate finds the objects and our member.
func (f *serversFile) locate(doc *json5.Document) error {
	d := jsontext.NewDecoder(bytes.NewReader(doc.JSON))
	at := func() int { return doc.Position(int(d.InputOffset())-1).Offset + 1 }
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	f.top = object{begin: at(), members: d.PeekKind() != '}'}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if name.String() != f.key {
			if err := d.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if kind := d.PeekKind(); kind != '{' {
			return fmt.Errorf("%q is no object", f.key)
		}
		if err := f.locateOwn(d, at); err != nil {
			return err
		}
	}
	return nil
}

// locateOwn reads the object of servers.
func (f *serversFile) locateOwn(d *jsontext.Decoder, at func() int) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	f.servers = &object{begin: at(), members: d.PeekKind() != '}'}
	for d.PeekKind() != '}' {
		before := at()
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		isOwn := name.String() == ServerName
		if err := d.SkipValue(); err != nil {
			return err
		}
		if isOwn {
			f.own = span{before, at()}
		}
	}
	_, err := d.ReadToken()
	return err
}

// edit returns the text with the entry, or without it.
func (f *serversFile) edit(e *Entry) ([]byte, error) {
	if f.own != (span{}) {
		if e != nil && f.says(e) {
			return f.text, nil
		}
		cut := f.cutOwn()
		if e == nil {
			return cut, nil
		}
		again, err := parseServers(cut, f.key)
		if err != nil {
			return nil, err
		}
		return again.edit(e)
	}
	if e == nil {
		return f.text, nil
	}
	value, err := json.Marshal(e, jsontext.Multiline(false), jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))
	if err != nil {
		return nil, err
	}
	member := fmt.Sprintf("%q: %s", ServerName, value)
	if f.servers != nil {
		return f.insert(f.servers, "    ", member), nil
	}
	return f.insert(&f.top, "  ", fmt.Sprintf("%q: {\n    %s\n  }", f.key, member)), nil
}

// says reports whether the file names the server so already.
func (f *serversFile) says(e *Entry) bool {
	servers, _ := f.value[f.key].(map[string]any)
	return isEntry(servers[ServerName], e)
}

// isEntry reports whether a value of a file is an entry.
func isEntry(value any, e *Entry) bool {
	text, err := json.Marshal(value)
	var there Entry
	return err == nil && json.Unmarshal(text, &there, json.RejectUnknownMembers(true)) == nil && reflect.DeepEqual(&there, e)
}

// insert puts a member at the beginning of an object.
func (f *serversFile) insert(o *object, indent, member string) []byte {
	text := "\n" + indent + member
	rest := f.text[o.begin:]
	if o.members {
		text += ","
	} else if !strings.HasPrefix(strings.TrimLeft(string(rest), " \t\r"), "\n") {
		text += "\n" + indent[2:]
	}
	return slices.Concat(f.text[:o.begin], []byte(text), rest)
}

// cutOwn removes our member, with the comma that belongs to it: that before it, or, of the
// first member, that behind it.
func (f *serversFile) cutOwn() []byte {
	before, after := f.text[:f.own.from], f.text[f.own.to:]
	if rest := bytes.TrimLeft(after, " \t\r\n"); f.own.from == f.servers.begin && bytes.HasPrefix(rest, []byte(",")) {
		after = rest[1:]
	}
	return slices.Concat(before, after)
}

// check refuses a text that says anything else about the rest than before.
func (f *serversFile) check(after []byte, e *Entry) error {
	doc, err := json5.Parse(after)
	if err != nil {
		return err
	}
	var value map[string]any
	if err := json.Unmarshal(doc.JSON, &value); err != nil {
		return err
	}
	servers, _ := value[f.key].(map[string]any)
	if _, there := servers[ServerName]; there != (e != nil) || !reflect.DeepEqual(without(f.value, f.key), without(value, f.key)) {
		return errors.New("it cannot be changed without changing the rest")
	}
	return nil
}

// without is a file without our server, and without the key if nothing else is there.
func without(value map[string]any, key string) map[string]any {
	copied := map[string]any{}
	for name, v := range value {
		servers, ok := v.(map[string]any)
		if name != key || !ok {
			copied[name] = v
			continue
		}
		rest := map[string]any{}
		for name, v := range servers {
			if name != ServerName {
				rest[name] = v
			}
		}
		if len(rest) > 0 {
			copied[key] = rest
		}
	}
	return copied
}
