package containers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/dockercli"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/loopback"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

const (
	// keepEvery is the pause between looks at a container whose command has not begun.
	keepEvery = 250 * time.Millisecond
	// keepBegin is how long the command may take to begin.
	keepBegin = time.Minute
	// keepEgress is how long the egress of one start stays open.
	keepEgress = 7 * 24 * time.Hour
)

// Keep serves the ports of a running container, which are files of this process from
// number 4 on, and the egress of its main command, until the container ends. What the
// command is started with is written to file 3.
func Keep(ctx context.Context, b *Sandboxes, names *egress.Service, name string) error {
	says := os.NewFile(firstFile, "answer")
	k, err := begin(ctx, b, names, name)
	answer := kept{}
	if err != nil {
		answer.Error = err.Error()
	} else {
		defer k.close()
		answer.Published = k.published()
	}
	err = errors.Join(err, json.NewEncoder(says).Encode(&answer), says.Close())
	if err != nil {
		return err
	}
	return k.serve(ctx)
}

// keeper serves the ports of one container.
type keeper struct {
	dir       string // of records
	container *dockercli.Container
	box       *sandbox.Handle
	egress    *egress.Egress
	listeners []net.Listener
}

// begin enters the container and opens what it is served with.
func begin(ctx context.Context, b *Sandboxes, names *egress.Service, name string) (*keeper, error) {
	k := &keeper{dir: b.Dir()}
	var err error
	if k.container, err = dockercli.ReadRecord(k.dir, name); err != nil {
		return nil, err
	}
	for i := range k.container.Ports {
		l, err := net.FileListener(os.NewFile(uintptr(firstFile+1+i), "port"))
		if err != nil {
			return nil, err
		}
		k.listeners = append(k.listeners, l)
	}
	in, err := b.use(ctx)
	if err != nil {
		return nil, err
	}
	if k.box, err = in.Manager.Attach(ctx, name); err != nil {
		return nil, err
	}
	if k.container.Network == dockercli.BrowserNetwork {
		err = k.openEgress(ctx, in, names)
	}
	if err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// openEgress opens what the configuration allows browsers.
func (k *keeper) openEgress(ctx context.Context, in *provide.Installation, names *egress.Service) error {
	p, err := in.Plan(provide.Subject{})
	if err != nil {
		return err
	}
	p.Net, p.Spec = nil, &sandbox.Spec{Name: k.container.Name, Network: "none"}
	k.egress, err = names.Open(ctx, k.box, p, egress.Options{Config: browsers.EgressOf, Terms: grant.Terms{Until: time.Now().Add(keepEgress)}})
	return err
}

// published is what the main command is started with.
func (k *keeper) published() dockercli.Published {
	p := dockercli.Published{Grant: k.egress.GrantID()}
	for name, value := range k.egress.Environment() {
		p.Env = append(p.Env, name+"="+value)
	}
	slices.Sort(p.Env)
	return p
}

func (k *keeper) close() {
	_ = k.egress.Close()
	k.box.Release()
}

// serve passes connections on until the container's command ends.
func (k *keeper) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var serving sync.WaitGroup
	for i, l := range k.listeners {
		inside := k.container.Ports[i].Inside
		serving.Go(func() {
			_ = loopback.Serve(ctx, l, func(ctx context.Context, _ net.Conn) (net.Conn, error) { return k.box.Machine.Dial(ctx, "tcp", inside) })
		})
	}
	k.awaitEnd(ctx)
	cancel()
	serving.Wait()
	return nil
}

// awaitEnd waits until the command of the container has ended, or never began.
func (k *keeper) awaitEnd(ctx context.Context) {
	for end := time.Now().Add(keepBegin); time.Now().Before(end); {
		c, err := dockercli.ReadRecord(k.dir, k.container.Name)
		switch {
		case err != nil || c.ID != k.container.ID:
			return
		case c.Main.Process != "":
			_, _ = k.box.Machine.Wait(ctx, c.Main.Process)
			return
		case c.Main.Attended != "":
			k.awaitAttended(ctx, c.Main.Attended)
			return
		}
		if !sleep(ctx, keepEvery) {
			return
		}
	}
}

// awaitAttended waits for the end of a command that a client attends to.
func (k *keeper) awaitAttended(ctx context.Context, id string) {
	for sleep(ctx, keepEvery) {
		if c, err := dockercli.ReadRecord(k.dir, k.container.Name); err != nil || c.ID != k.container.ID || c.Main.Attended != id {
			return
		}
	}
}

// sleep waits, and reports false when ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// errKeep is returned for a call of the verb by a person.
var errKeep = fmt.Errorf("%s is called by `atoll docker start` alone", KeepVerb)

// CheckKeep refuses a call that is not made by Publish.
func CheckKeep(args []string) error {
	if info, err := os.NewFile(firstFile, "answer").Stat(); len(args) != 2 || err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return errKeep
	}
	return nil
}
