package ask

import (
	"bytes"

	"github.com/atoll-run/atoll/internal/model/proxy/jsonscan"
)

// value reads any value and checks what is in it.
func (r *Reader) value() {
	s := r.scan
	switch s.Kind() {
	case jsonscan.Object:
		r.object()
	case jsonscan.Array:
		for s.Open(); s.More(); {
			r.value()
		}
	default:
		s.Skip()
	}
}

// object reads an object. In a list of items of the Responses dialect one that has
// an id and neither a type nor a role is a reference to an item that the provider keeps.
func (r *Reader) object() {
	s, id, item := r.scan, false, false
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		var space [32]byte
		name := appendLower(space[:0], key)
		switch string(name) {
		case "id":
			id = true
		case "type", "role":
			item = item || s.Kind() == jsonscan.String
		}
		r.member(name)
	}
	if id && !item && r.rules.Strict && r.shape == Responses {
		r.refuseStored("id")
	}
}

// member reads the value of a member by the meaning of its name, which is given
// in lower case: a provider may ignore case.
func (r *Reader) member(name []byte) {
	if r.shape.isGoogle() && googleOpaque[string(name)] {
		r.scan.Skip()
		return
	}
	switch string(name) {
	case "url", "image_url", "file_url", "audio_url", "video_url", "document_url", "server_url", "image", "uri", "file_uri", "fileuri", "video", "audio_uri":
		r.address(name)
	case "data", "file_data", "bytes":
		r.content(name)
	case "file_id", "file_ids", "vector_store_ids", "container_id", "connector_id", "server_label", "mcp_servers":
		r.reference(name)
	case "tools", "functions":
		r.tools()
	case "ttl":
		r.ttl()
	case "type":
		r.kind()
	case "parameters", "input_schema", "json_schema", "schema", "properties", "arguments":
		r.scan.Skip() // describes or fills a tool that runs on the caller's side
	case "input":
		// A tool's input is an object of the tool's own making; the input of a
		// request is a list or a text.
		if r.scan.Kind() == jsonscan.Object {
			r.scan.Skip()
			return
		}
		r.value()
	default:
		r.value()
	}
}

// ttl notes how long the provider is asked to keep a part of the request in its
// cache: an hour costs more than the usual minutes.
func (r *Reader) ttl() {
	if r.scan.Kind() != jsonscan.String {
		r.scan.Skip()
		return
	}
	if string(r.scan.Text()) != "5m" {
		r.ask.LongCache = true
	}
}

// kind reads the type of a part of the request. One refers to something that the
// provider keeps, by an id that could be any.
func (r *Reader) kind() {
	if r.scan.Kind() != jsonscan.String {
		r.value()
		return
	}
	if string(r.scan.Text()) == "item_reference" && r.rules.Strict {
		r.refuseStored("item_reference")
	}
}

// address reads something that the provider would fetch.
func (r *Reader) address(name []byte) {
	if r.scan.Kind() != jsonscan.String {
		r.value()
		return
	}
	start := r.scan.Pos()
	inline := bytes.Equal(r.scan.Prefix(len("data:")), []byte("data:"))
	if r.scan.Err() != nil {
		return
	}
	if inline {
		r.countMedia(start)
	} else if r.rules.Strict {
		r.refuse("provider_egress", printable(name), "the provider may not fetch anything for a sandbox without a network: send the content itself, as data:")
	}
}

// content reads something that is sent along, which must not be an address.
func (r *Reader) content(name []byte) {
	if r.scan.Kind() != jsonscan.String {
		r.value()
		return
	}
	start := r.scan.Pos()
	begin := r.scan.Prefix(32)
	if r.scan.Err() != nil {
		return
	}
	if r.rules.Strict && isAddress(begin) {
		r.refuse("provider_egress", printable(name), "must be the content itself, not where it is")
		return
	}
	r.countMedia(start)
}

// isAddress tells an address from content: a scheme and two slashes.
func isAddress(begin []byte) bool {
	scheme, _, found := bytes.Cut(begin, []byte("//"))
	return found && len(bytes.Trim(scheme, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-:")) == 0 && !isBase64(scheme)
}

// isBase64 reports whether two slashes are part of base64 content: there is no
// colon before them.
func isBase64(before []byte) bool { return len(before) > 0 && before[len(before)-1] != ':' }

func (r *Reader) countMedia(start int) {
	r.media += int64(r.scan.Pos() - start)
	r.medias++
}

// reference reads the name of something that the provider keeps.
func (r *Reader) reference(name []byte) {
	if r.rules.Strict && r.scan.Kind() != jsonscan.Null {
		r.refuseStored(printable(name))
	}
	r.scan.Skip()
}

func (r *Reader) refuseStored(field string) {
	r.refuse("provider_egress", field, "nothing that is kept at the provider may be used by a sandbox without a network")
}
