package browser

import (
	"testing"

	"github.com/chromedp/cdproto/cdp/jsonv2"
)

// TestAttackBrowser18_Events: what a browser says of downloads is believed for those that
// it has begun, by ids that can be file names, and within the limits.
func TestAttackBrowser18_Events(t *testing.T) {
	d := &Downloads{limits: Limits{Files: 2, Bytes: 10}}
	begin := func(id string) string {
		return d.begin(jsonv2.Value(`{"frameId":"f","guid":"` + id + `","url":"http://a/","suggestedFilename":"a\u001b\u202e"}`))
	}
	for _, id := range []string{"../../etc/passwd", "", "a/b", "a b", "\\u0000"} {
		if begin(id); len(d.list) != 0 {
			t.Errorf("the id %q was taken", id)
		}
	}
	d.advance(jsonv2.Value(`{"guid":"never-begun","totalBytes":1,"receivedBytes":1,"state":"completed"}`))
	d.advance(jsonv2.Value(`{"guid":`))
	if ended, _ := d.Take(map[string]bool{}); len(ended) != 0 {
		t.Errorf("%+v", ended)
	}
	if begin("one") != "" || begin("two") != "" || begin("three") != "three" || d.list[0].Name != "a" {
		t.Errorf("%+v", d.list)
	}
	if cancel := d.advance(jsonv2.Value(`{"guid":"one","totalBytes":1,"receivedBytes":11,"state":"inProgress"}`)); cancel != "one" {
		t.Error("a file that is too large goes on")
	}
	d.advance(jsonv2.Value(`{"guid":"one","totalBytes":1,"receivedBytes":1,"state":"completed"}`))
	ended, over := d.Take(map[string]bool{})
	if len(ended) != 1 || ended[0].Why == "" || over != 1 {
		t.Errorf("%+v, %d too many", ended, over)
	}
}
