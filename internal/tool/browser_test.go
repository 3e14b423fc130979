package tool_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/tool"
)

// calledBrowser keeps the arguments of the last call.
type calledBrowser struct{ args tool.BrowserArgs }

func (b *calledBrowser) Do(_ context.Context, a *tool.BrowserArgs) (*tool.Result, error) {
	b.args = *a
	return &tool.Result{Where: tool.WhereBrowser}, nil
}

// TestBrowserArguments: the schema is small, and the words of OpenClaw mean the same.
func TestBrowserArguments(t *testing.T) {
	b, ok := tool.Find("browser")
	if size := len(b.Schema()); !ok || size > 3<<10 {
		t.Errorf("the schema has %d bytes", size)
	}
	used := &calledBrowser{}
	all := policy.ResolveTools(config.ToolLists{Global: config.ToolList{AlsoAllow: []string{"browser"}}}, "")
	set := tool.New(tool.Options{Caller: tool.Caller{Policy: all}, Isolated: &tool.Location{}, Browser: used})
	for args, want := range map[string]tool.BrowserArgs{
		`{"action":"open","targetUrl":"https://a.example/"}`:                                          {Action: "open", URL: "https://a.example/"},
		`{"action":"act","request":{"kind":"click","ref":"e7","doubleClick":true}}`:                   {Action: "click", Ref: "e7", Double: true},
		`{"action":"act","kind":"type","ref":"e1","text":"x","submit":true,"profile":"openclaw"}`:     {Action: "type", Ref: "e1", Text: "x", Submit: true},
		`{"action":"act","request":{"kind":"drag","startRef":"e1","endRef":"e2"},"targetId":"t2"}`:    {Action: "drag", Ref: "e1", To: "e2", Tab: "t2"},
		`{"action":"act","kind":"wait","timeMs":10}`:                                                  {Action: "wait", Ms: 10},
		`{"action":"dialog","accept":true,"promptText":"yes"}`:                                        {Action: "dialog", Accept: true, Text: "yes"},
		`{"action":"snapshot","snapshotFormat":"ai","refs":"aria","compact":true,"interactive":true}`: {Action: "snapshot", Interactive: true},
		`{"action":"screenshot","fullPage":true,"type":"jpeg"}`:                                       {Action: "screenshot", FullPage: true},
		`{"action":"act","kind":"clickCoords","x":3,"y":4}`:                                           {Action: "click"},
		`{"action":"act","request":{"kind":"scrollIntoView","ref":"e3"}}`:                             {Action: "scroll", Ref: "e3"},
		`{"action":"status"}`:                          {Action: "tabs"},
		`{"action":"waitfordownload","timeoutMs":500}`: {Action: "downloads", Ms: 500},
		`{"action":"act","kind":"fill","fields":[{"ref":"e1","type":"checkbox","value":true}]}`: {Action: "fill", Fields: []tool.BrowserField{{Ref: "e1", Text: "true"}}},
		`{"action":"fill","fields":[{"ref":"e1","value":"x"},{"ref":"e2","value":7}]}`:          {Action: "fill", Fields: []tool.BrowserField{{Ref: "e1", Text: "x"}, {Ref: "e2", Text: "7"}}},
		`{"action":"fill","fields":[{"ref":"e1","text":"x"}]}`:                                  {Action: "fill", Fields: []tool.BrowserField{{Ref: "e1", Text: "x"}}},
		`{"action":"screenshot","labels":true}`:                                                 {Action: "screenshot", Labels: true},
		`{"action":"click","ref":"e7"}`:                                                         {Action: "click", Ref: "e7"},
	} {
		if _, err := set.Call(t.Context(), "browser", jsontext.Value(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		} else if got := used.args; got.Action != want.Action || got.URL != want.URL || got.Ref != want.Ref || got.To != want.To || got.Tab != want.Tab || got.Text != want.Text || got.Ms != want.Ms || got.Double != want.Double || got.Submit != want.Submit || got.Accept != want.Accept || got.Labels != want.Labels || !slices.Equal(got.Fields, want.Fields) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	for _, args := range []string{`{"action":"fly"}`, `{"action":"open"}`, `{"action":"press"}`, `{"action":"wait","ms":30001}`, `{"action":"click","wrong":1}`, `{}`, `[]`} {
		if err := b.Check(jsontext.Value(args)); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
	t.Logf("schema: %d bytes", len(b.Schema()))
}

// TestBrowserMissingActions: an action of OpenClaw's that ours lacks is refused by name, with
// what there is in its place.
func TestBrowserMissingActions(t *testing.T) {
	b, _ := tool.Find("browser")
	for args, instead := range map[string]string{
		`{"action":"act","kind":"batch","actions":[{"kind":"click","ref":"e1"}]}`: "once for each action",
		`{"action":"act","request":{"kind":"resize","width":800,"height":600}}`:   "sandbox.browser.viewport",
		`{"action":"emulate","device":"phone"}`:                                   "sandbox.browser.viewport",
		`{"action":"importprofile"}`:                                              "sandbox.browser.profile",
		`{"action":"stop"}`:                                                       "atoll browser stop",
	} {
		err := b.Check(jsontext.Value(args))
		if err == nil || !strings.Contains(err.Error(), "is not supported; the actions are [open ") || !strings.Contains(errhint.Of(err), instead) {
			t.Errorf("%s: %v (%s)", args, err, errhint.Of(err))
		}
	}
}
