package agent

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/tool"
)

const (
	// maxImages is how many pictures of a conversation a model is shown: the newest.
	maxImages = 8
	// maxImageBytes bounds those pictures together, so that a request with them stays
	// below what providers and the proxy take.
	maxImageBytes = 12 << 20
	// maxRecorded bounds the pictures that a transcript has on disk.
	maxRecorded = 24 << 20
	// imageTokens is what a picture costs.
	imageTokens = 1600
	// imageGone stands for a picture that a model is not shown any more.
	imageGone = "\n[a picture was here; it is not shown any more]"
)

// resultOf returns a result of a tool for the model. A picture that is too large for it is
// left out and told.
func resultOf(r *tool.Result) Result {
	result := Result{Text: r.Text, IsError: r.IsError}
	for i := range r.Images {
		picture := &r.Images[i]
		switch {
		case len(picture.Data) > chat.MaxImage:
			result.Text += fmt.Sprintf("\n[the picture is not shown: it has %d bytes, more than %d; make a smaller one]", len(picture.Data), chat.MaxImage)
		case len(result.Images) == maxImages:
			result.Text += fmt.Sprintf("\n[a picture is not shown: %d are the most]", maxImages)
		default:
			result.Images = append(result.Images, chat.Image{MediaType: picture.MediaType, Data: picture.Data})
		}
	}
	return result
}

// imageBytes is the size of the pictures of a message.
func imageBytes(m *chat.Message) (size int) {
	for i := range m.Images {
		size += len(m.Images[i].Data)
	}
	return size
}

// dropOldImages replaces pictures by a text once newer ones fill what a model is shown.
func dropOldImages(messages []chat.Message) {
	number, size := 0, 0
	for i := range slices.Backward(messages) {
		m := &messages[i]
		number += len(m.Images)
		size += imageBytes(m)
		if len(m.Images) > 0 && (number > maxImages || size > maxImageBytes) {
			m.Images, m.Text = nil, m.Text+imageGone
		}
	}
}

// withoutImages replaces all pictures by a text, for a model that takes none.
func withoutImages(messages []chat.Message) {
	for i := range messages {
		if m := &messages[i]; len(m.Images) > 0 {
			m.Images, m.Text = nil, m.Text+"\n[the result has a picture, and this model takes none]"
		}
	}
}

// onDisk returns an entry as it is written: without pictures once the transcript has
// enough of them.
func (t *Transcript) onDisk(e *entry) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Message == nil || len(e.Message.Images) == 0 || t.recorded+imageBytes(e.Message) <= maxRecorded {
		return e
	}
	written, message := *e, *e.Message
	message.Images, message.Text = nil, message.Text+imageGone
	written.Message = &message
	return &written
}
