package tool

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxArguments bounds the JSON of one call. It is twice the largest file that a
// call can write: escapes make text longer.
const MaxArguments = 16 << 20

// ArgumentsError says what is wrong with the arguments of a call, all of it.
type ArgumentsError struct {
	Tool string
	Err  error
}

func (e *ArgumentsError) Error() string { return e.Tool + ": arguments: " + e.Err.Error() }

func (e *ArgumentsError) Unwrap() error { return e.Err }

// checker is implemented by arguments that depend on each other.
type checker interface{ check() []error }

// decode reads arguments strictly: a member that is unknown, given twice,
// missing or of another kind is named with its place.
func decode(raw jsontext.Value, args any) error {
	if len(raw) > MaxArguments {
		return fmt.Errorf("%d bytes are over the limit of %d", len(raw), MaxArguments)
	}
	if len(raw) == 0 {
		raw = jsontext.Value("{}")
	}
	if raw.Kind() != '{' {
		return errors.New("not a JSON object")
	}
	var given map[string]jsontext.Value
	if err := json.Unmarshal(raw, &given); err != nil {
		return explain(err)
	}
	if err := checkMembers(given, membersOf(reflect.TypeOf(args).Elem())); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, args, json.RejectUnknownMembers(true)); err != nil {
		return explain(err)
	}
	if c, ok := args.(checker); ok {
		return errors.Join(c.check()...)
	}
	return nil
}

// member is one key of an argument object.
type member struct {
	name     string
	required bool
}

// membersOf reads the json tags of a struct.
func membersOf(t reflect.Type) (members []member) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		members = append(members, member{name, !strings.Contains(options, "omitzero")})
	}
	return members
}

// checkMembers finds everything that is there and should not be, or the other
// way round. A null counts as not given.
func checkMembers(given map[string]jsontext.Value, members []member) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(members, func(m member) bool { return m.name == name }) {
			problems = append(problems, fmt.Errorf("%s is not known%s", place(name), suggestion(name, members)))
		}
	}
	for _, m := range members {
		if value, ok := given[m.name]; m.required && (!ok || value.Kind() == 'n') {
			problems = append(problems, fmt.Errorf("%s is missing", place(m.name)))
		}
	}
	return errors.Join(problems...)
}

// maxQuoted bounds what an error repeats of the arguments.
const maxQuoted = 60

// place writes the JSON pointer of a member.
func place(name string) string {
	return quote(string(jsontext.Pointer("").AppendToken(name)))
}

func quote(text string) string {
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}

// suggestion names the member that was probably meant: the same letters in
// another case or form, or else the whole list.
func suggestion(name string, members []member) string {
	var names []string
	for _, m := range members {
		if plain(m.name) == plain(name) {
			return fmt.Sprintf(" (did you mean %q?)", m.name)
		}
		names = append(names, m.name)
	}
	return " (known: " + strings.Join(names, ", ") + ")"
}

func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// explain turns an error of the JSON library into one line that names the place.
func explain(err error) error {
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("%s: %w", whereIn(s.JSONPointer, s.ByteOffset), s.Err)
	}
	s, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err
	}
	at := whereIn(s.JSONPointer, s.ByteOffset)
	switch {
	case errors.Is(s.Err, json.ErrUnknownName):
		return fmt.Errorf("%s is not known", at)
	case s.GoType != nil && s.JSONKind != 0:
		return fmt.Errorf("%s must be %s, not %s", at, kindOfType(s.GoType), kindNames[s.JSONKind])
	case s.Err != nil:
		return fmt.Errorf("%s: %w", at, s.Err)
	}
	return fmt.Errorf("%s has a value that does not fit", at)
}

func whereIn(pointer jsontext.Pointer, offset int64) string {
	if pointer == "" {
		return fmt.Sprintf("byte %d", offset)
	}
	return quote(string(pointer))
}

var kindNames = map[jsontext.Kind]string{
	'n': "null", 'f': "a boolean", 't': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "a list",
}

// kindOfType is what JSON calls values of a Go type.
func kindOfType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}
