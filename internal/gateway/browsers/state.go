package browsers

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/browser/screen"
)

// stateEvery is how often it is looked who drives and what is shown.
const stateEvery = 500 * time.Millisecond

// sayDriver tells the viewer who drives, and the address and title of the page that is
// shown, at first and whenever they change. shown is nil for a window, which shows them
// itself.
func (v *viewer) sayDriver(ctx context.Context, shown *screen.Screen) {
	tick := time.NewTicker(stateEvery)
	defer tick.Stop()
	var last api.ViewEvent
	for {
		now := api.ViewEvent{Type: api.ViewState, Driver: v.driver(), Control: v.ticket.control}
		if shown != nil {
			now.URL, now.Title = shown.Page()
		}
		if now != last {
			if v.tell(ctx, &now) != nil {
				return // the view ends
			}
			last = now
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// driver says who drives the browser, as the viewer sees it.
func (v *viewer) driver() string {
	switch {
	case v.drives.Load():
		return api.DriverYou
	case v.service.Drivers.IsTaken(v.ticket.browser):
		return api.DriverPerson
	}
	return api.DriverAgent
}
