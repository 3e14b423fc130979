package fakellm

import "fmt"

// The shapes of a Chat Completions answer, as OpenAI sends them.
type (
	completion struct {
		ID      string     `json:"id"`
		Object  string     `json:"object"`
		Created int64      `json:"created"`
		Model   string     `json:"model"`
		Choices []choice   `json:"choices"`
		Usage   *chatUsage `json:"usage,omitempty"`
	}
	choice struct {
		Index   int     `json:"index"`
		Delta   *speech `json:"delta,omitempty"`
		Message *speech `json:"message,omitempty"`
		Finish  *string `json:"finish_reason"`
	}
	speech struct {
		Role    string     `json:"role,omitempty"`
		Content *string    `json:"content,omitempty"`
		Calls   []chatCall `json:"tool_calls,omitempty"`
	}
	chatCall struct {
		Index    *int     `json:"index,omitempty"`
		ID       string   `json:"id,omitempty"`
		Type     string   `json:"type,omitempty"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
	chatUsage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
)

// created is the time of every answer: a script has no clock.
const created = 1_700_000_000

func finishReason(t Turn) string {
	if len(t.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func usageOf(t Turn, r *Request) *chatUsage {
	u := r.Usage(t)
	out := &chatUsage{Prompt: u.Prompt, Completion: u.Completion, Total: u.Prompt + u.Completion}
	out.Details.Cached = u.Cached
	return out
}

func envelope(r *Request, object string) completion {
	return completion{ID: fmt.Sprintf("chatcmpl-%d", r.answers(false)+1), Object: object, Created: created, Model: r.Model}
}

func wholeChat(r *Request, t Turn) completion {
	out := envelope(r, "chat.completion")
	message, finish := &speech{Role: "assistant"}, finishReason(t)
	if t.Text != "" || len(t.Calls) == 0 {
		message.Content = &t.Text
	}
	for _, c := range t.Calls {
		message.Calls = append(message.Calls, chatCall{ID: c.ID, Type: "function", Function: function{c.Name, c.Arguments}})
	}
	out.Choices = []choice{{Message: message, Finish: &finish}}
	out.Usage = usageOf(t, r)
	return out
}

func streamChat(e *events, r *Request, t Turn) {
	say := func(s *speech, finish *string) {
		c := envelope(r, "chat.completion.chunk")
		c.Choices = []choice{{Delta: s, Finish: finish}}
		e.send("", c)
	}
	empty := ""
	say(&speech{Role: "assistant", Content: &empty}, nil)
	for _, part := range t.parts() {
		say(&speech{Content: &part}, nil)
	}
	for i, c := range t.Calls {
		say(&speech{Calls: []chatCall{{Index: &i, ID: c.ID, Type: "function", Function: function{Name: c.Name}}}}, nil)
		for _, part := range cut(c.Arguments) {
			say(&speech{Calls: []chatCall{{Index: &i, Function: function{Arguments: part}}}}, nil)
		}
	}
	finish := finishReason(t)
	say(&speech{}, &finish)
	if r.StreamOptions.IncludeUsage {
		c := envelope(r, "chat.completion.chunk")
		c.Choices, c.Usage = []choice{}, usageOf(t, r)
		e.send("", c)
	}
	fmt.Fprint(e.w, "data: [DONE]\n\n")
}
