package chat

import (
	"fmt"
	"strings"
)

// maxCalls bounds the calls of one answer.
const maxCalls = 128

// answerBuilder collects the parts of an answer within its limits.
type answerBuilder struct {
	Answer
	text  strings.Builder
	calls []*callBuild
	left  int // bytes
	tell  func(string)
	ended bool // the model said why it stopped
}

type callBuild struct {
	id, name string
	args     strings.Builder
}

func (b *answerBuilder) reserve(n int) error {
	if b.left -= n; b.left < 0 {
		return &Error{Code: CodeTooLarge, Message: "the answer is larger than is accepted"}
	}
	return nil
}

func (b *answerBuilder) addText(text string) error {
	if text == "" {
		return nil
	}
	if err := b.reserve(len(text)); err != nil {
		return err
	}
	b.text.WriteString(text)
	b.tell(text)
	return nil
}

// call returns the call with a number, making it if it is the next.
func (b *answerBuilder) call(index int) (*callBuild, error) {
	switch {
	case index >= 0 && index < len(b.calls):
		return b.calls[index], nil
	case index == len(b.calls) && index < maxCalls:
		b.calls = append(b.calls, &callBuild{})
		return b.calls[index], nil
	}
	return nil, &Error{Code: CodeGarbage, Message: fmt.Sprintf("tool call number %d is out of order", index)}
}

func (b *answerBuilder) addArgs(c *callBuild, part string) error {
	if err := b.reserve(len(part)); err != nil {
		return err
	}
	c.args.WriteString(part)
	return nil
}

// answer is what was put together. A call without an id or a name cannot be
// answered, so it makes the whole answer garbage: whole checks that first.
func (b *answerBuilder) answer() *Answer {
	b.Text = b.text.String()
	for _, c := range b.calls {
		args := c.args.String()
		if strings.TrimSpace(args) == "" {
			args = "{}"
		}
		b.Calls = append(b.Calls, Call{ID: c.id, Name: c.name, Args: args})
	}
	if len(b.Calls) > 0 && b.Stop == Finished {
		b.Stop = WantsTool
	}
	return &b.Answer
}

// validate checks that every call can be carried out and answered.
func (b *answerBuilder) validate() error {
	seen := map[string]bool{}
	for i, c := range b.calls {
		if c.name == "" || c.id == "" || seen[c.id] {
			return &Error{Code: CodeGarbage, Message: fmt.Sprintf("tool call %d has no name, no id, or the id of another", i+1)}
		}
		seen[c.id] = true
	}
	return nil
}
