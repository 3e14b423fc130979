package envd

import (
	"context"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/wire"
)

// The kinds of changes, in E2B's words. A file that moves is removed here and created there.
const (
	eventCreate = "EVENT_TYPE_CREATE"
	eventWrite  = "EVENT_TYPE_WRITE"
	eventRemove = "EVENT_TYPE_REMOVE"
	eventChmod  = "EVENT_TYPE_CHMOD"
)

// fileEvent is a change in a directory.
type fileEvent struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// errLost is a watch that has missed changes.
var errLost = &fault{resourceExhausted, "changes came faster than they were taken: look at the directory, and watch again"}

// eventsOf converts changes. What the guest makes in passing, when it writes a file in one
// step, is left out, and the file is written.
func eventsOf(changes []guestfs.FileEvent) (list []fileEvent, err error) {
	passing := false // something in passing was taken away, or got its name
	for _, e := range changes {
		if e.What == guestfs.FileLost {
			return list, errLost
		}
		if strings.HasPrefix(path.Base(e.Path), wire.TemporaryPrefix) {
			passing = e.What == guestfs.FileRemoved
			continue
		}
		switch e.What {
		case guestfs.FileCreated:
			if list = append(list, fileEvent{e.Path, eventCreate}); passing {
				list = append(list, fileEvent{e.Path, eventWrite})
			}
		case guestfs.FileWritten:
			list = append(list, fileEvent{e.Path, eventWrite})
		case guestfs.FileRemoved:
			list = append(list, fileEvent{e.Path, eventRemove})
		case guestfs.FileAttributes:
			list = append(list, fileEvent{e.Path, eventChmod})
		}
		passing = false
	}
	return list, nil
}

// watchRequest is a directory to watch.
type watchRequest struct {
	Path         string `json:"path"`
	Recursive    bool   `json:"recursive"`
	IncludeEntry bool   `json:"includeEntry"`
	AllowMounts  bool   `json:"allowNetworkMounts"`
}

// watch begins to watch what a message names.
func (c *rpc) watch(ctx context.Context) (*guestfs.Watcher, error) {
	var q watchRequest
	if err := c.read(&q); err != nil {
		return nil, err
	}
	if q.IncludeEntry || q.AllowMounts {
		return nil, &fault{unimplemented, "includeEntry and allowNetworkMounts are not supported"}
	}
	at, err := c.path(q.Path)
	if err != nil {
		return nil, err
	}
	var w *guestfs.Watcher
	err = c.through(ctx, at, true, func(at string) (err error) {
		w, err = c.files.Watch(ctx, at, &guestfs.WatchOptions{Recursive: q.Recursive})
		return err
	})
	return w, err
}

// watchDir sends the changes in a directory until the client leaves, or its time is over.
func (c *rpc) watchDir() error {
	if c.life > 0 {
		ctx, cancel := context.WithTimeout(c.Ctx, c.life)
		defer cancel()
		c.Ctx = ctx
	}
	w, err := c.watch(c.Ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := c.send(map[string]any{"start": struct{}{}}); err != nil {
		return err
	}
	defer c.keepAlive(map[string]any{"keepalive": struct{}{}})()
	for {
		changes, err := w.Next()
		if err != nil {
			return c.streamError(err)
		}
		events, lost := eventsOf(changes)
		for _, e := range events {
			if err := c.send(map[string]any{"filesystem": e}); err != nil {
				return err
			}
		}
		if lost != nil {
			return lost
		}
	}
}
