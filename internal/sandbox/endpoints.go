package sandbox

import "context"

// Endpoint is a port of this machine by which a browser is reached, as the registry names it.
type Endpoint string

// The endpoints of a browser.
const (
	EndpointCDP    Endpoint = "cdp"    // programs attach
	EndpointWindow Endpoint = "window" // people watch its window
)

// setEndpoint are the statements that record the port of an endpoint. Their arguments are the new
// port, the name, and the port that it replaces.
var setEndpoint = map[Endpoint]string{
	EndpointCDP:    "UPDATE sandboxes SET cdp_port = ?1 WHERE container_name = ?2 AND imported = 0 AND (cdp_port = ?3 OR ?3 < 0)",
	EndpointWindow: "UPDATE sandboxes SET no_vnc_port = ?1 WHERE container_name = ?2 AND imported = 0 AND (no_vnc_port = ?3 OR ?3 < 0)",
}

// OpenEndpoint records the port of an endpoint that was opened.
func (r *Registry) OpenEndpoint(ctx context.Context, name string, d Endpoint, port int) error {
	return r.exec(ctx, setEndpoint[d], port, name, -1)
}

// CloseEndpoint records that the endpoint at a port was closed, unless there is another one by now.
func (r *Registry) CloseEndpoint(ctx context.Context, name string, d Endpoint, port int) error {
	return r.exec(ctx, setEndpoint[d], 0, name, port)
}
