package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/loopback"
	"github.com/atoll-run/atoll/internal/machine"
)

// hostService is a port of the host's loopback interface that is shown inside at the
// same port.
type hostService struct {
	port   int
	cancel context.CancelFunc
	done   chan struct{}
}

func (h *hostService) close() {
	h.cancel()
	<-h.done
}

// setServices shows these ports of the host inside, and no others, to the callers of the
// grant.
func (e *Egress) setServices(ctx context.Context, ports []int) error {
	e.services = slices.DeleteFunc(e.services, func(h *hostService) bool {
		if slices.Contains(ports, h.port) {
			return false
		}
		h.close()
		return true
	})
	for _, port := range ports {
		if slices.ContainsFunc(e.services, func(h *hostService) bool { return h.port == port }) {
			continue
		}
		if err := e.service.checkService(port); err != nil {
			return err
		}
		l, _, err := (&inside{e.box.Machine, e.grant.ID()}).Listen(ctx, netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
		if errors.Is(err, machine.ErrPortTaken) {
			return errhint.With(fmt.Errorf("service %d: something in the sandbox listens on that port already", port), "end it, or leave the service out; `atoll sandbox ps` shows what runs")
		}
		if err != nil {
			return err
		}
		served, cancel := context.WithCancel(context.WithoutCancel(ctx))
		h := &hostService{port: port, cancel: cancel, done: make(chan struct{})}
		e.services = append(e.services, h)
		dial := e.dialService(port)
		go func() {
			defer close(h.done)
			_ = loopback.Serve(served, l, dial)
		}()
	}
	return nil
}

// dialService connects to a port of the host, once the audit log has a record of it.
func (e *Egress) dialService(port int) loopback.Dial {
	return func(ctx context.Context, accepted net.Conn) (net.Conn, error) {
		event := &audit.EgressEvent{
			Time: time.Now(), Subject: subjectOf(e.grant), Sandbox: e.box.Name, Exec: accepted.(conn).Exec(), Event: audit.EgressOpened,
			Name: "localhost", Port: port, Mode: "service", Rule: fmt.Sprintf("service %d", port), Route: fmt.Sprintf("127.0.0.1:%d", port),
		}
		log, err := e.service.models.AuditLog()
		if err != nil {
			return nil, err
		}
		if err := e.service.checkService(port); err != nil {
			event.Event, event.Reason = audit.EgressDenied, err.Error()
			return nil, errors.Join(err, log.Append(event))
		}
		if err := log.Append(event); err != nil {
			return nil, err
		}
		out, err := (&net.Dialer{}).DialContext(ctx, "tcp4", event.Route)
		if err != nil {
			e.denials.add(event.Exec, egress.Denial{Name: event.Name, Port: port, Reason: "nothing answers on that port of the host", Hint: "start the service on the host"})
		}
		return out, err
	}
}
