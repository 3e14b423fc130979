package tool

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/errhint"
)

// openClawNames are the names of OpenClaw's browser tool for arguments of ours.
var openClawNames = map[string]string{
	"targetUrl": "url", "targetId": "tab", "inputRef": "ref", "startRef": "ref", "endRef": "to", "promptText": "text", "timeMs": "ms", "timeoutMs": "ms",
	"fn": "expression", "doubleClick": "double", "level": "filter",
}

// openClawActions are actions, and kinds of its action act, of OpenClaw's for ours.
var openClawActions = map[string]BrowserAction{
	"status": BrowserTabs, "start": BrowserTabs, "doctor": BrowserTabs, "profiles": BrowserTabs, "download": BrowserDownloads, "waitfordownload": BrowserDownloads,
	"clickCoords": BrowserClick, "scrollIntoView": BrowserScroll,
}

// openClawMissing are actions, and kinds of its action act, of OpenClaw's that ours lacks,
// and what there is in their place.
var openClawMissing = map[string]string{
	"batch": "call the tool once for each action", "resize": "pages have the size of sandbox.browser.viewport", "emulate": "pages have the size of sandbox.browser.viewport, and no device is imitated",
	"importprofile": "log in by handover; sandbox.browser.profile keeps cookies", "stop": "it is ended when it is idle, or by a person with `atoll browser stop`",
}

// missingAction returns an error for an action of OpenClaw's that ours lacks.
func missingAction(raw jsontext.Value) error {
	var given struct {
		Action, Kind string
		Request      struct{ Kind string }
	}
	if len(raw) > MaxArguments || json.Unmarshal(raw, &given, json.MatchCaseInsensitiveNames(true)) != nil {
		return nil // what is wrong with it is said by the check
	}
	action := given.Action
	if action == "act" {
		action = cmp.Or(given.Kind, given.Request.Kind)
	}
	if instead, missing := openClawMissing[action]; missing {
		return errhint.With(fmt.Errorf("%s is not supported; the actions are %v", action, BrowserActions()), instead)
	}
	return nil
}

// openClawIgnored are arguments of OpenClaw's that choose what there is one of here.
var openClawIgnored = []string{"profile", "target", "node", "compact", "mode", "refs", "snapshotFormat", "slowly", "type", "format", "kind", "request", "frame", "element", "modifiers", "loadState", "delayMs", "stopOnError", "urls", "dialogId", "path", "label", "dashboard"}

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
	if ours, theirs := openClawActions[text(given["action"])]; theirs {
		given["action"], _ = json.Marshal(ours)
	}
	if fields := fieldsOf(given["fields"]); fields != nil {
		given["fields"] = fields
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
	if _, theirs := openClawActions[text(given["action"])]; theirs {
		return true
	}
	if fieldsOf(given["fields"]) != nil {
		return true
	}
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

// openClawField is one field of a form in the words of OpenClaw.
type openClawField struct {
	Ref   string         `json:"ref"`
	Type  string         `json:"type"`
	Value jsontext.Value `json:"value"`
}

// fieldsOf turns fields in the words of OpenClaw into ours; nil if they are none.
func fieldsOf(raw jsontext.Value) jsontext.Value {
	var theirs []openClawField
	if len(raw) == 0 || json.Unmarshal(raw, &theirs, json.RejectUnknownMembers(true)) != nil {
		return nil
	}
	ours := make([]BrowserField, len(theirs))
	for i, f := range theirs {
		if len(f.Value) == 0 {
			return nil
		}
		ours[i] = BrowserField{Ref: f.Ref, Text: text(f.Value)}
		if f.Value.Kind() != '"' {
			ours[i].Text = string(f.Value) // true, false or a number
		}
	}
	rewritten, err := json.Marshal(ours)
	if err != nil {
		return nil
	}
	return rewritten
}
