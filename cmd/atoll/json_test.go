//go:build linux

package main

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// checkJSON looks at one place of a JSON document, "." being the whole:
//
//	json FILE PLACE is VALUE        it is this JSON value
//	json FILE PLACE keys NAME…      it is an object with exactly these keys
//	json FILE PLACE includes NAME…  it is an object with these keys, and perhaps more
//	json FILE PLACE count N         it is a list of so many items
//	json FILE PLACE has VALUE       it is a list that holds this JSON value
//	json FILE PLACE matches REGEXP  it is a string like this
//	json FILE PLACE exists          it is there
//
// A place is names and indexes joined by points: errors.0.path. FILE may be
// stdout. With ! in front the check must fail.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: json FILE PLACE is|keys|includes|count|has|matches|exists [ARG…]")
	}
	var document any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &document); err != nil {
		ts.Fatalf("%s is no JSON: %v", args[0], err)
	}
	value, there := find(document, args[1])
	problem := examine(value, there, args[2], args[3:])
	if (problem == "") == neg {
		ts.Fatalf("%s: %v %s", args[1], args[2:], problem)
	}
}

// save FILE PLACE NAME: gives a variable the string at a place of a document.
func save(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: save FILE PLACE NAME")
	}
	var document any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &document))
	value, _ := find(document, args[1])
	text, ok := value.(string)
	if !ok {
		ts.Fatalf("%s is no string", args[1])
	}
	ts.Setenv(args[2], text)
}

// find walks down to a place.
func find(value any, place string) (any, bool) {
	for name := range strings.SplitSeq(strings.Trim(place, "."), ".") {
		switch v := value.(type) {
		case map[string]any:
			member, ok := v[name]
			if !ok {
				return value, name == ""
			}
			value = member
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// examine says what is wrong, or "".
func examine(value any, there bool, verb string, args []string) string {
	if !there {
		return "is not there"
	}
	if verb == "exists" {
		return ""
	}
	check, ok := map[string]func(value any, args []string) string{
		"is": isValue, "keys": hasKeys, "includes": includesKeys, "count": hasCount, "has": hasItem, "matches": matches,
	}[verb]
	if !ok || len(args) == 0 && verb != "keys" {
		return "is no check that exists"
	}
	return check(value, args)
}

func parsed(text string) (value any) {
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	return value
}

func isValue(value any, args []string) string { return cmp.Diff(parsed(args[0]), value) }

func hasKeys(value any, args []string) string {
	object, ok := value.(map[string]any)
	if !ok {
		return "is no object"
	}
	return cmp.Diff(slices.Sorted(slices.Values(args)), slices.Sorted(maps.Keys(object)))
}

func includesKeys(value any, args []string) string {
	object, _ := value.(map[string]any)
	missing := slices.DeleteFunc(slices.Clone(args), func(name string) bool { _, ok := object[name]; return ok })
	if len(missing) > 0 {
		return "lacks " + strings.Join(missing, ", ")
	}
	return ""
}

func hasCount(value any, args []string) string {
	list, ok := value.([]any)
	if !ok || strconv.Itoa(len(list)) != args[0] {
		return "is a list of " + strconv.Itoa(len(list))
	}
	return ""
}

func hasItem(value any, args []string) string {
	list, _ := value.([]any)
	if !slices.ContainsFunc(list, func(item any) bool { return cmp.Equal(item, parsed(args[0])) }) {
		return cmp.Diff([]any{parsed(args[0])}, list)
	}
	return ""
}

func matches(value any, args []string) string {
	text, ok := value.(string)
	if ok && regexp.MustCompile(args[0]).MatchString(text) {
		return ""
	}
	return cmp.Diff(args[0], text)
}
