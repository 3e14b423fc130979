package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/tool"
)

// Toolset offers the tools of a session to a model.
type Toolset struct{ Set *tool.Set }

// Functions lists the tools that policy lets the session call and that can work
// here.
func (t Toolset) Functions() (list []chat.Function) {
	for _, each := range tool.All() {
		if each.Authorize(t.Set.Caller) == nil && t.works(each.Name) {
			list = append(list, chat.Function{Name: each.Name, Description: each.Description, Schema: each.Schema()})
		}
	}
	return list
}

func (t Toolset) works(name string) bool {
	switch name {
	case "web_fetch":
		return t.Set.NoFetch == nil && t.Set.Networked != nil
	case "web_search":
		return t.Set.Search != nil
	case "browser":
		return t.Set.Browser != nil && t.Set.NoBrowser == nil
	case "memory_search", "memory_get":
		return t.Set.Recall != nil
	case "sessions_list", "sessions_history":
		return t.Set.Sessions != nil
	}
	return true
}

// Parallel is true for tools that only read.
func (Toolset) Parallel(name string) bool {
	return slices.Contains([]string{"read", "ls", "grep", "view_image", "web_fetch", "web_search", "memory_search", "memory_get", "sessions_list", "sessions_history"}, name)
}

// Call carries out a call. Unknown tools, bad arguments and policy's refusals
// are things a model can do something about.
func (t Toolset) Call(ctx context.Context, name, args string) (Result, error) {
	result, err := t.Set.Call(ctx, name, jsontext.Value(args))
	var arguments *tool.ArgumentsError
	var denied *tool.DeniedError
	switch {
	case errors.As(err, &arguments), errors.As(err, &denied):
		result = tool.ErrorResult(err)
	case err != nil:
		return Result{}, err
	}
	return resultOf(result), nil
}
