package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fill sets everything that a value can hold.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		v.SetUint(1)
	}
}

// A request that travels in parts is the text that it always was, and arrives
// whole: with every part, with each alone, and with none.
func TestRequestsTravelWhole(t *testing.T) {
	var all Request
	fill(reflect.ValueOf(&all).Elem())
	requests := []Request{all, {Op: OpPing}}
	for i := range reflect.TypeFor[Request]().NumField() {
		one := Request{Op: OpPing}
		reflect.ValueOf(&one).Elem().Field(i).Set(reflect.ValueOf(all).Field(i))
		requests = append(requests, one)
	}
	for _, want := range requests {
		var sent bytes.Buffer
		if err := WriteRequest(&sent, &want); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(&want)
		if err != nil || !bytes.Equal(sent.Bytes()[4:], text) {
			t.Errorf("%v: it travels as\n%s, and is\n%s", err, sent.Bytes()[4:], text)
		}
		got, err := NewReader(&sent).Request()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// Parts that are not what they should be are refused, as the whole was.
func TestRequestsWithBadParts(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"op":"exec","exec":{"argv":1}}`: false, `{"op":"exec","exec":[]}`: false, `{"op":"exec","exec":"x"}`: false,
		`{"op":"ping","exec":null}`: true, `{"op":"ping","unknown":{}}`: true, `{"op":"exec","exec":{},"file":7}`: false,
	} {
		message := append([]byte{0, 0, 0, byte(len(text))}, text...)
		if _, err := NewReader(bytes.NewReader(message)).Request(); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
