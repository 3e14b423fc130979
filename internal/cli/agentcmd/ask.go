package agentcmd

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// awaitInput reads what a person types, until that ends or the verb is interrupted. The
// terminal is left as it was.
func awaitInput[T any](ctx context.Context, in *os.File, read func() (T, error)) (T, error) {
	type typed struct {
		value T
		err   error
	}
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		var none T
		return none, err
	}
	done := make(chan typed, 1)
	go func() {
		value, err := read()
		done <- typed{value, err}
	}()
	select {
	case t := <-done:
		return t.value, t.err
	case <-ctx.Done(): // the process ends, and the read with it
		var none T
		_ = term.Restore(int(in.Fd()), before)
		return none, ctx.Err()
	}
}

// maxAnswer bounds a typed answer.
const maxAnswer = 256

// agrees reads a person's answer to a question; an empty line is yes.
func (s *start) agrees(ctx context.Context) (bool, error) {
	in, ok := s.In.(*os.File)
	if !ok {
		return false, nil
	}
	line, err := awaitInput(ctx, in, func() (string, error) {
		return bufio.NewReader(io.LimitReader(in, maxAnswer)).ReadString('\n')
	})
	answer := strings.ToLower(strings.TrimSpace(line))
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return err == nil && (answer == "" || answer == "y" || answer == "yes"), nil
}
