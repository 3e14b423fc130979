package litellmtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// logs serves /spend/logs/v2.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	from, errFrom := time.Parse(time.DateTime, q.Get("start_date"))
	to, errTo := time.Parse(time.DateTime, q.Get("end_date"))
	page, errPage := strconv.Atoi(q.Get("page"))
	size, errSize := strconv.Atoi(q.Get("page_size"))
	if errFrom != nil || errTo != nil || errPage != nil || errSize != nil || page < 1 || size < 1 || size > 1000 {
		refuse(w, http.StatusBadRequest, "bad_request_error", "start_date, end_date, page and page_size are required")
		return
	}
	rows := s.chosen(q.Get("end_user"), from, to.Add(time.Second))
	total := len(rows)
	rows = rows[min((page-1)*size, total):min(page*size, total)]
	reply(w, map[string]any{"data": rows, "total": min(total, 10000), "page": page, "page_size": size, "total_pages": (total + size - 1) / size})
}

// chosen returns the written rows of a time; they are never nil.
func (s *Server) chosen(endUser string, from, to time.Time) []Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := []Row{}
	for _, row := range s.written {
		at, err := time.Parse(time.RFC3339Nano, row.StartTime)
		if err == nil && !at.Before(from) && at.Before(to) && (endUser == "" || row.EndUser == endUser) {
			rows = append(rows, row)
		}
	}
	return rows
}

// oldLogs serves /spend/logs, whose dates are days and whose last day is not
// part of it; metadata is text there.
func (s *Server) oldLogs(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	from, errFrom := time.Parse(time.DateOnly, q.Get("start_date"))
	to, errTo := time.Parse(time.DateOnly, q.Get("end_date"))
	if errFrom != nil || errTo != nil {
		refuse(w, http.StatusBadRequest, "bad_request_error", "start_date and end_date are days")
		return
	}
	if q.Get("summarize") != "false" {
		reply(w, []map[string]any{{"startTime": q.Get("start_date"), "spend": 1.0, "users": map[string]any{}, "models": map[string]any{}}})
		return
	}
	out := []map[string]any{}
	for _, row := range s.chosen("", from, to) {
		text, _ := json.Marshal(row)
		var m map[string]any
		_ = json.Unmarshal(text, &m)
		metadata, _ := json.Marshal(row.Metadata)
		m["metadata"] = string(metadata)
		out = append(out, m)
	}
	reply(w, out)
}
