package browser

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/target"

	"github.com/atoll-run/atoll/internal/browser/devtools"
)

// remoteFrame is a frame of a page that another process shows.
type remoteFrame struct {
	id     cdp.FrameID
	parent *devtools.Session // of the page or frame that it is in
}

// remoteFrames are those of a page, by their sessions.
type remoteFrames struct {
	mu  sync.Mutex
	all map[*devtools.Session]remoteFrame
}

// add keeps a frame and reports whether there was room for it.
func (f *remoteFrames) add(s *devtools.Session, frame remoteFrame) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) >= maxFrames {
		return false
	}
	if f.all == nil {
		f.all = map[*devtools.Session]remoteFrame{}
	}
	f.all[s] = frame
	return true
}

// remove forgets the frame of a session by its id.
func (f *remoteFrames) remove(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.all {
		if s.ID() == id {
			delete(f.all, s)
		}
	}
}

// list returns the frames that there are now.
func (f *remoteFrames) list() map[*devtools.Session]remoteFrame {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.all)
}

// attachFrames has the browser tell of frames of a page, or of a frame, that other
// processes show.
func (p *Page) attachFrames(ctx context.Context, s *devtools.Session) error {
	attached, cancel := s.Subscribe(target.AttachedToTarget.Method)
	detached, cancel2 := s.Subscribe(target.DetachedFromTarget.Method)
	go func() {
		defer cancel()
		defer cancel2()
		p.watchFrames(s, attached, detached)
	}()
	flat := true
	_, err := cdp.Call(ctx, s, target.SetAutoAttach, target.SetAutoAttachParams{
		AutoAttach: true, Flatten: &flat, Filter: target.Filter{{Type: "iframe"}, {Exclude: true}},
	})
	return err
}

// watchFrames keeps the frames until the page is left.
func (p *Page) watchFrames(s *devtools.Session, attached, detached <-chan jsonv2.Value) {
	for {
		select {
		case <-p.left:
			return
		case text, open := <-attached:
			if !open {
				return
			}
			p.addFrame(s, text)
		case text, open := <-detached:
			var e target.EventDetachedFromTarget
			if !open {
				return
			}
			if jsonv2.Unmarshal(text, &e) == nil {
				p.frames.remove(string(e.SessionID))
			}
		}
	}
}

// addFrame keeps a frame, and looks for frames in it.
func (p *Page) addFrame(parent *devtools.Session, text jsonv2.Value) {
	var e target.EventAttachedToTarget
	if jsonv2.Unmarshal(text, &e) != nil || e.TargetInfo == nil || e.TargetInfo.Type != "iframe" || !isID(string(e.TargetInfo.TargetID)) || e.SessionID == "" {
		return
	}
	s := parent.Sibling(string(e.SessionID))
	if p.frames.add(s, remoteFrame{cdp.FrameID(e.TargetInfo.TargetID), parent}) {
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		_ = p.attachFrames(ctx, s) // a frame that is gone has none
	}
}

// errFrameGone is returned for an element of a frame that is not there any more.
var errFrameGone = errors.New("its frame is gone")

// origin returns where a frame of another process begins on the page, and scrolls it into
// view.
func (p *Page) origin(ctx context.Context, s *devtools.Session) (at point, err error) {
	all := p.frames.list()
	for depth := 0; s != p.session; depth++ {
		frame, ok := all[s]
		if !ok || depth > maxFrames {
			return point{}, errFrameGone
		}
		owner, err := cdp.Call(ctx, frame.parent, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: frame.id})
		if err != nil {
			return point{}, err
		}
		if _, err := cdp.Call(ctx, frame.parent, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: owner.BackendNodeID}); err != nil {
			return point{}, err
		}
		box, err := cdp.Call(ctx, frame.parent, dom.GetBoxModel, dom.GetBoxModelParams{BackendNodeID: owner.BackendNodeID})
		if err != nil || box.Model == nil || len(box.Model.Content) != 8 {
			return point{}, errors.Join(errFrameGone, err)
		}
		at.x += box.Model.Content[0]
		at.y += box.Model.Content[1]
		s = frame.parent
	}
	return at, nil
}
