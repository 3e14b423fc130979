package tool

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// openClawNames are the names of OpenClaw's browser tool for arguments of ours.
var openClawNames = map[string]string{
	"targetUrl": "url", "targetId": "tab", "inputRef": "ref", "startRef": "ref", "endRef": "to", "promptText": "text", "timeMs": "ms", "timeoutMs": "ms",
	"fn": "expression", "doubleClick": "double", "level": "filter",
}

// openClawIgnored are arguments of OpenClaw's that choose what there is one of here.
var openClawIgnored = []string{"profile", "target", "node", "compact", "mode", "refs", "snapshotFormat", "slowly", "type", "labels", "format", "kind", "request", "frame", "element", "modifiers", "loadState"}

// fromOpenClaw turns arguments in the words of OpenClaw's tool into ours: action "act" with
// a request, or its members beside it, and other names. What is no object stays as it is.
func fromOpenClaw(raw jsontext.Value) jsontext.Value {
	var given map[string]jsontext.Value
	if len(raw) > MaxArguments || json.Unmarshal(raw, &given) != nil || !isOpenClaw(given) {
		return raw
	}
	var request map[string]jsontext.Value
	if json.Unmarshal(given["request"], &request) == nil {
		for name, value := range request {
			if _, has := given[name]; !has {
				given[name] = value
			}
		}
	}
	if text(given["action"]) == "act" {
		given["action"] = given["kind"]
	}
	for theirs, ours := range openClawNames {
		value, has := given[theirs]
		if _, hasOurs := given[ours]; has && !hasOurs {
			given[ours] = value
		}
		delete(given, theirs)
	}
	for _, name := range openClawIgnored {
		delete(given, name)
	}
	rewritten, err := json.Marshal(given, json.Deterministic(true))
	if err != nil {
		return raw
	}
	return rewritten
}

// isOpenClaw reports whether arguments have a name that only OpenClaw's tool has.
func isOpenClaw(given map[string]jsontext.Value) bool {
	for name := range given {
		if _, theirs := openClawNames[name]; theirs || slices.Contains(openClawIgnored, name) {
			return true
		}
	}
	return false
}

// text returns a JSON string; "" if it is none.
func text(value jsontext.Value) (s string) {
	_ = json.Unmarshal(value, &s)
	return s
}
