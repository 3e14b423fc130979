package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

// filled returns values of a struct with one field set each, and one with all.
func filled[T any](t *testing.T) []*T {
	t.Helper()
	all := new(T)
	values := []*T{new(T), all}
	for i := range reflect.TypeFor[T]().NumField() {
		one := new(T)
		set(t, reflect.ValueOf(one).Elem().Field(i))
		set(t, reflect.ValueOf(all).Elem().Field(i))
		values = append(values, one)
	}
	return values
}

func set(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("a \"q\" \\ \x01\n\t é \u2028 <&>")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(-12345678901)
	case reflect.Uint16:
		v.SetUint(24)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		set(t, v.Index(1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		for _, field := range v.Elem().Fields() {
			set(t, field)
		}
	default:
		t.Fatalf("no value for a %v", v.Type())
	}
}

// TestEveryFieldOfACommandArrives: each field of Exec alone, all of them, and text
// that is not UTF-8.
func TestEveryFieldOfACommandArrives(t *testing.T) {
	t.Parallel()
	values := append(filled[Exec](t), &Exec{ID: "x", Argv: []Text{"a\xff", ""}, Env: []Text{"A=\xfe"}, Dir: "/\x80"})
	for _, want := range values {
		var sent bytes.Buffer
		if err := WriteRequest(&sent, &Request{Op: OpExec, Exec: want}); err != nil {
			t.Fatal(err)
		}
		got, err := NewReader(&sent).Request()
		if err != nil || got.Op != OpExec || got.Exec == nil {
			t.Fatalf("%+v: %+v, %v", want, got, err)
		}
		if len(got.Exec.Argv) == 0 {
			got.Exec.Argv = want.Argv
		}
		if len(got.Exec.Env) == 0 {
			got.Exec.Env = want.Env
		}
		if !reflect.DeepEqual(got.Exec, want) {
			t.Errorf("%+v, want %+v", got.Exec, want)
		}
	}
}

// TestEveryFieldOfAnExitArrives, and malformed ones are refused.
func TestEveryFieldOfAnExitArrives(t *testing.T) {
	t.Parallel()
	for _, want := range filled[Exit](t) {
		payload, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := new(Exit)
		if err := (Frame{FrameExit, payload}).Decode(got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", payload, got, err)
		}
	}
	for _, payload := range []string{"", "{", "}", "{,}", `{"code":}`, `{"code":1`, `{"code":1,}`, `"code":1`, `{"code":1}}`, `{"code":"1"}`, "\xff"} {
		if err := (Frame{FrameExit, []byte(payload)}).Decode(new(Exit)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%q: %v", payload, err)
		}
	}
}
