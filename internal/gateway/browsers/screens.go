package browsers

import (
	"context"

	"github.com/atoll-run/atoll/internal/browser/screen"
)

// shared is the screen of a tab for all who watch it.
type shared struct {
	*screen.Screen
	browser *connection
	viewers int
}

// screen returns the screen of a tab, which ends with its last viewer. The caller calls
// release.
func (s *Service) screen(ctx context.Context, name, tab string, u *used) (shown *screen.Screen, release func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	mine := u.screens[tab]
	if mine == nil || mine.Err() != nil { // the viewers of one that has ended close it
		b, err := s.open(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		mine = &shared{Screen: screen.Start(b.Browser, tab), browser: b}
		u.show(tab, mine)
	}
	mine.viewers++
	return mine.Screen, func() { u.leave(tab, mine) }, nil
}

// show makes a screen the one that later viewers of a tab share. The caller holds the lock.
func (u *used) show(tab string, s *shared) {
	if u.screens == nil {
		u.screens = map[string]*shared{}
	}
	u.screens[tab] = s
}

// leave ends the use of a screen.
func (u *used) leave(tab string, mine *shared) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if mine.viewers--; mine.viewers > 0 {
		return
	}
	mine.Close()
	mine.browser.release()
	if u.screens[tab] == mine {
		delete(u.screens, tab)
	}
}
