package rfb

import (
	"encoding/binary"
	"maps"
	"slices"
)

// The messages of a viewer.
const (
	setPixelFormat = 0
	setEncodings   = 2
	askUpdate      = 3
	keyEvent       = 4
	pointerEvent   = 5
	clientCutText  = 6
)

// lengths are those of a viewer's messages without their kind, or of their first part.
var lengths = map[byte]int{setPixelFormat: 19, setEncodings: 3, askUpdate: 9, keyEvent: 7, pointerEvent: 5, clientCutText: 7}

// FromViewer carries what a viewer sends until one side leaves. What a viewer types who
// does not drive is left out.
func (r *Relay) FromViewer() error {
	for {
		kind, err := read(r.Viewer, 1)
		if err != nil {
			return err
		}
		length, known := lengths[kind[0]]
		if !known {
			return protocolError("a viewer's message of the kind %d", kind[0])
		}
		body, err := read(r.Viewer, length)
		if err != nil {
			return err
		}
		message, err := r.judge(kind[0], body)
		if err != nil {
			return err
		}
		if _, err := r.Screen.Write(message); err != nil {
			return err
		}
	}
}

// judge returns what becomes of a viewer's message: nothing of it, if it may not arrive.
func (r *Relay) judge(kind byte, body []byte) ([]byte, error) {
	message := append([]byte{kind}, body...)
	switch kind {
	case setPixelFormat:
		return message, r.setPixel(body[3:])
	case setEncodings:
		return r.chooseEncodings(body)
	case askUpdate:
		r.asked = true
		return message, nil
	case clientCutText:
		text, err := readText(r.Viewer, body[3:], MaxCutText)
		if err != nil || !r.Drives() {
			return nil, err
		}
		return append(message, text...), nil
	}
	if !r.Drives() {
		return nil, nil
	}
	return message, r.held.note(kind, body)
}

// setPixel sets the viewer's pixel format. After the first request for an update a format
// of another size is refused: rectangles under way could not be parsed.
func (r *Relay) setPixel(form []byte) error {
	pixel, err := bytesOfPixel(form)
	switch {
	case err != nil:
		return err
	case r.asked && pixel != r.pixel.Load():
		return protocolError("another form of pixels after the first picture")
	}
	r.pixel.Store(pixel)
	return nil
}

// chooseEncodings leaves those encodings in a viewer's list that FromScreen can read.
func (r *Relay) chooseEncodings(body []byte) ([]byte, error) {
	count := binary.BigEndian.Uint16(body[1:])
	if count > maxEncodings {
		return nil, protocolError("%d encodings", count)
	}
	list, err := read(r.Viewer, 4*int(count))
	if err != nil {
		return nil, err
	}
	message := []byte{setEncodings, 0, 0, 0}
	for one := range slices.Chunk(list, 4) {
		if _, known := encodings[int32(binary.BigEndian.Uint32(one))]; known {
			message = append(message, one...)
		}
	}
	binary.BigEndian.PutUint16(message[2:], uint16((len(message)-4)/4))
	return message, nil
}

// held are the keys and buttons that a viewer has pressed and not let go.
type held struct {
	keys    map[uint32]bool
	pointer []byte // the last event with a button; nil if none is down
}

// note keeps what a message presses.
func (h *held) note(kind byte, body []byte) error {
	if kind == pointerEvent {
		h.pointer = nil
		if body[0] != 0 {
			h.pointer = slices.Clone(body)
		}
		return nil
	}
	key := binary.BigEndian.Uint32(body[3:])
	if body[0] == 0 {
		delete(h.keys, key)
		return nil
	}
	if h.keys == nil {
		h.keys = map[uint32]bool{}
	}
	if h.keys[key] = true; len(h.keys) > maxPressed {
		return protocolError("more than %d keys are down", maxPressed)
	}
	return nil
}

// LetGo releases the keys and buttons that the viewer has pressed, when it drives no more.
// It is called where FromViewer runs, or after it.
func (r *Relay) LetGo() error {
	var all []byte
	for _, key := range slices.Sorted(maps.Keys(r.held.keys)) {
		all = binary.BigEndian.AppendUint32(append(all, keyEvent, 0, 0, 0), key)
	}
	if r.held.pointer != nil {
		all = append(append(all, pointerEvent, 0), r.held.pointer[1:]...)
	}
	r.held = held{}
	_, err := r.Screen.Write(all)
	return err
}
