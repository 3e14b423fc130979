package api

import (
	"fmt"
	"net/url"
	"reflect"
)

// Values returns the parameters of a query struct: every field that is not zero, by
// its query tag.
func Values(query any) url.Values {
	values := url.Values{}
	v := reflect.Indirect(reflect.ValueOf(query))
	if !v.IsValid() {
		return values
	}
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("query")
		switch list, ok := reflect.TypeAssert[[]string](v.Field(i)); {
		case name == "" || v.Field(i).IsZero():
		case ok:
			values[name] = list
		default:
			values.Set(name, fmt.Sprint(v.Field(i).Interface()))
		}
	}
	return values
}
