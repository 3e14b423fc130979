package image

import (
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// BuildError is a build whose step failed. Its message is what the step said
// last; the engine's own error repeats the whole command instead.
type BuildError struct {
	Image string
	Said  string
	Err   error // the engine's
}

func (e *BuildError) Error() string { return "image " + e.Image + ": build failed: " + e.Said }

func (e *BuildError) Unwrap() error { return e.Err }

// failure explains why a build ended, by the end of its output.
func failure(image string, output *lastLines, err error) error {
	said := output.last()
	if said == "" {
		said = err.Error()
	}
	return &BuildError{Image: image, Said: said, Err: err}
}

// lastLines passes writes on, and keeps their end for an error message.
type lastLines struct {
	io.Writer
	text []byte
}

const keptOutput = 2 << 10

func (l *lastLines) Write(p []byte) (int, error) {
	l.text = append(l.text, p...)
	l.text = l.text[max(0, len(l.text)-keptOutput):]
	return l.Writer.Write(p)
}

// engineLine matches what engines say themselves between a step's output.
var engineLine = lazyregexp.New(`^(Step |STEP |Removing intermediate container |---> |-->|==> )`)

// last returns the last two lines of the steps' output, as one.
func (l *lastLines) last() string {
	const most = 2
	var said []string
	for line := range strings.Lines(string(l.text)) {
		if line = strings.TrimSpace(line); line != "" && !engineLine.MatchString(line) {
			said = append(said, line)
		}
	}
	return strings.Join(said[max(0, len(said)-most):], " · ")
}

// plainText drops the colours that engines give to a step's error output: they
// are not ours to choose, and progress may go to a file.
type plainText struct{ io.Writer }

var colour = lazyregexp.New(`\x1b\[[0-9;]*m`)

func (p plainText) Write(text []byte) (int, error) {
	if _, err := p.Writer.Write(colour.ReplaceAll(text, nil)); err != nil {
		return 0, err
	}
	return len(text), nil
}
