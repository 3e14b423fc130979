package dialect

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/model/proxy/jsonscan"
)

// maxModels bounds the models of a list.
const maxModels = 4096

// ModelIDs reads the ids of an upstream's list of models.
func ModelIDs(body []byte) ([]string, error) {
	s := jsonscan.New()
	s.Reset(body)
	if s.Kind() != jsonscan.Object {
		return nil, fmt.Errorf("the upstream's list of models is not one")
	}
	var ids []string
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		if string(key) != "data" || s.Kind() != jsonscan.Array {
			s.Skip()
			continue
		}
		for s.Open(); s.More(); {
			if id := modelID(s); id != "" && len(ids) < maxModels {
				ids = append(ids, id)
			}
		}
	}
	return ids, s.End()
}

func modelID(s *jsonscan.Scanner) (id string) {
	if s.Kind() != jsonscan.Object {
		s.Skip()
		return ""
	}
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		if string(key) == "id" && s.Kind() == jsonscan.String {
			id = string(s.Text())
		} else {
			s.Skip()
		}
	}
	return id
}

// AppendModels appends a list of models that clients of every dialect can read.
// It holds nothing but ids.
func AppendModels(dst []byte, ids []string) []byte {
	dst = append(dst, `{"object":"list","has_more":false,"data":[`...)
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"type":"model","object":"model","owned_by":"atoll","created":0,"created_at":"1970-01-01T00:00:00Z","id":`...)
		dst = appendText(dst, id)
		dst = append(dst, `,"display_name":`...)
		dst = append(appendText(dst, id), '}')
	}
	dst = append(dst, ']')
	if len(ids) > 0 {
		dst = append(appendText(append(dst, `,"first_id":`...), ids[0]), `,"last_id":`...)
		dst = appendText(dst, ids[len(ids)-1])
	}
	return append(dst, '}')
}
