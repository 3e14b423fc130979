package ws

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/gateway/session/attach"
)

// attachment is a file that comes with a message. The MIME type that the client
// sends is ignored.
type attachment struct {
	Type     string `json:"type"`
	MIMEType string `json:"mimeType"`
	FileName string `json:"fileName"`
	Content  string `json:"content"` // base64, also as a data URL
}

// decodeAttachments decodes attachments, within their limits.
func decodeAttachments(all []attachment) ([]attach.Upload, error) {
	if len(all) > attach.MaxFiles {
		return nil, invalid(fmt.Sprintf("%d attachments, at most %d are taken", len(all), attach.MaxFiles))
	}
	var uploads []attach.Upload
	for _, a := range all {
		u, err := attach.Decode(a.FileName, a.Content)
		if err != nil {
			return nil, invalid(err.Error())
		}
		uploads = append(uploads, u)
	}
	return uploads, nil
}
