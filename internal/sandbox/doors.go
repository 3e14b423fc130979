package sandbox

import "context"

// Door is a port of this machine by which a browser is reached, as the registry names it.
type Door string

// The doors of a browser.
const (
	DoorCDP    Door = "cdp"    // programs attach
	DoorWindow Door = "window" // people watch its window
)

// setDoor are the statements that record the port of a door. Their arguments are the new
// port, the name, and the port that it replaces.
var setDoor = map[Door]string{
	DoorCDP:    "UPDATE sandboxes SET cdp_port = ?1 WHERE container_name = ?2 AND imported = 0 AND (cdp_port = ?3 OR ?3 < 0)",
	DoorWindow: "UPDATE sandboxes SET no_vnc_port = ?1 WHERE container_name = ?2 AND imported = 0 AND (no_vnc_port = ?3 OR ?3 < 0)",
}

// OpenDoor records the port of a door that was opened.
func (r *Registry) OpenDoor(ctx context.Context, name string, d Door, port int) error {
	return r.exec(ctx, setDoor[d], port, name, -1)
}

// CloseDoor records that the door at a port was closed, unless there is another one by now.
func (r *Registry) CloseDoor(ctx context.Context, name string, d Door, port int) error {
	return r.exec(ctx, setDoor[d], 0, name, port)
}
