package browsertest_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

func callText(id int, session, method, params string) string {
	if session == "" {
		return fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, id, method, params)
	}
	return fmt.Sprintf(`{"id":%d,"method":%q,"params":%s,"sessionId":%q}`, id, method, params, session)
}

// answerOf returns the id of an answer and its text; 0 for an event.
func answerOf(data []byte) (id int, text string) {
	var m struct{ ID int }
	if json.Unmarshal(data, &m) != nil {
		return 0, ""
	}
	return m.ID, string(data)
}

// member returns a text in the result of an answer.
func member(t *testing.T, answer, name string) string {
	t.Helper()
	var m struct{ Result map[string]any }
	if err := json.Unmarshal([]byte(answer), &m); err != nil {
		t.Fatal(err)
	}
	text, ok := m.Result[name].(string)
	if !ok {
		t.Fatalf("no %s in %s", name, answer)
	}
	return text
}
