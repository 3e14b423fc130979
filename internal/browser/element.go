package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/atoll-run/atoll/internal/errhint"
)

// find returns the element of a ref of the document that the page shows now.
func (p *Page) find(ctx context.Context, ref string) (element, error) {
	const hint = "take a new snapshot and use its refs"
	top, err := cdp.Call(ctx, p.session, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return element{}, err
	}
	number, err := strconv.Atoi(strings.TrimPrefix(ref, "e"))
	e, known := p.refs.elements[ref]
	switch {
	case err != nil || number < 1 || number > p.refs.last || !strings.HasPrefix(ref, "e"):
		return element{}, errhint.With(fmt.Errorf("%.20q is no ref of a snapshot", ref), hint)
	case !known, top.FrameTree == nil || top.FrameTree.Frame == nil || string(top.FrameTree.Frame.LoaderID) != p.refs.document:
		return element{}, errhint.With(fmt.Errorf("ref %s is of an older page", ref), hint)
	}
	return e, nil
}

// point is a place of the page that is seen, in its own pixels.
type point struct{ x, y float64 }

// pointOf scrolls an element into view and returns its middle.
func (p *Page) pointOf(ctx context.Context, ref string) (point, error) {
	e, err := p.find(ctx, ref)
	if err != nil {
		return point{}, err
	}
	gone := func(err error) error {
		return errhint.With(fmt.Errorf("%s cannot be reached: %w", ref, err), "it may be hidden or gone: take a new snapshot")
	}
	if _, err := cdp.Call(ctx, e.session, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: e.node}); err != nil {
		return point{}, gone(err)
	}
	found, err := cdp.Call(ctx, e.session, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: e.node})
	if err != nil {
		return point{}, gone(err)
	}
	begin, err := p.origin(ctx, e.session)
	if err != nil {
		return point{}, gone(err)
	}
	for _, q := range found.Quads {
		if len(q) == 8 {
			return point{begin.x + (q[0]+q[2]+q[4]+q[6])/4, begin.y + (q[1]+q[3]+q[5]+q[7])/4}, nil
		}
	}
	return point{}, gone(errors.New("it has no place on the page"))
}

// call calls a function of ours on an element and returns its result as JSON.
func (p *Page) call(ctx context.Context, ref, function string, arguments ...any) (json.RawMessage, error) {
	e, err := p.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	object, err := cdp.Call(ctx, e.session, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: e.node})
	if err != nil || object.Object == nil {
		return nil, errhint.With(fmt.Errorf("%s is gone from the page", ref), "take a new snapshot")
	}
	yes := true
	params := runtime.CallFunctionOnParams{FunctionDeclaration: function, ObjectID: object.Object.ObjectID, ReturnByValue: &yes, UserGesture: &yes}
	for _, a := range arguments {
		text, err := json.Marshal(a)
		if err != nil {
			return nil, err
		}
		params.Arguments = append(params.Arguments, &runtime.CallArgument{Value: jsonv2.Value(text)})
	}
	done, err := cdp.Call(ctx, e.session, runtime.CallFunctionOn, params)
	if err != nil {
		return nil, err
	}
	return valueOf(done.Result, done.ExceptionDetails)
}

// valueOf returns the value of a script's result.
func valueOf(result *runtime.RemoteObject, failed *runtime.ExceptionDetails) (json.RawMessage, error) {
	if failed != nil {
		text := failed.Text
		if failed.Exception != nil && failed.Exception.Description != "" {
			text = failed.Exception.Description
		}
		return nil, fmt.Errorf("the page's script failed: %s", printable(text, maxName))
	}
	if result == nil || len(result.Value) == 0 {
		return json.RawMessage("null"), nil
	}
	return json.RawMessage(result.Value), nil
}

// Evaluate runs a script in the page and returns its value as JSON, of so many bytes at most.
func (p *Page) Evaluate(ctx context.Context, script string, most int) (string, error) {
	yes := true
	done, err := cdp.Call(ctx, p.session, runtime.Evaluate, runtime.EvaluateParams{Expression: script, ReturnByValue: &yes, AwaitPromise: &yes, UserGesture: &yes})
	if err != nil {
		return "", err
	}
	value, err := valueOf(done.Result, done.ExceptionDetails)
	return printable(string(value), most), err
}

// Text returns the text of the page, of an element by its ref, or of the first one that a
// CSS selector finds.
func (p *Page) Text(ctx context.Context, ref, selector string) (string, error) {
	var value json.RawMessage
	var err error
	if ref != "" {
		value, err = p.call(ctx, ref, `function() { return this.innerText ?? this.textContent }`)
	} else {
		chosen, _ := json.Marshal(selector)
		yes := true
		script := `(s => { const e = s ? document.querySelector(s) : document.body; return e ? (e.innerText ?? e.textContent) : null })(` + string(chosen) + `)`
		var done runtime.EvaluateResult
		if done, err = cdp.Call(ctx, p.session, runtime.Evaluate, runtime.EvaluateParams{Expression: script, ReturnByValue: &yes}); err == nil {
			value, err = valueOf(done.Result, done.ExceptionDetails)
		}
	}
	if err != nil {
		return "", err
	}
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil {
		return "", errhint.With(errors.New("nothing on the page has that selector"), "leave it out for all of the page")
	}
	return *text, nil
}
