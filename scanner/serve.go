package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

const (
	maxText  = 64 << 20  // bounds one text; the host asks for less
	maxBatch = 256 << 10 // texts that are looked through together, if they are there
)

// server looks through texts, as many at once as it has workers.
type server struct {
	find    func(string) []leak
	workers int
}

// batch is a few texts that came together, and what is answered to them.
type batch struct {
	texts   []string
	answers chan []byte
}

// serve reads ahead, but no further than there are workers. Answers are in the
// order of the texts.
func (s *server) serve(in *bufio.Reader, out io.Writer) error {
	work, order := make(chan *batch), make(chan *batch, s.workers)
	for range s.workers {
		go func() {
			for b := range work {
				b.answers <- s.answer(b.texts)
			}
		}()
	}
	written := make(chan error, 1)
	go func() { written <- write(out, order) }()
	err := s.read(in, work, order)
	close(work)
	close(order)
	if failed := <-written; err == nil {
		err = failed
	}
	return err
}

func (s *server) read(in *bufio.Reader, work, order chan<- *batch) error {
	for {
		b := &batch{answers: make(chan []byte, 1)}
		err := b.fill(in)
		if len(b.texts) > 0 {
			order <- b
			work <- b
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fill waits for one text and takes those that are there already.
func (b *batch) fill(in *bufio.Reader) error {
	for size := 0; size < maxBatch; {
		text, err := next(in)
		if err != nil {
			return err
		}
		b.texts = append(b.texts, text)
		size += len(text)
		if in.Buffered() == 0 {
			break
		}
	}
	return nil
}

func (s *server) answer(texts []string) []byte {
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	for _, text := range texts {
		if err := lines.Encode(s.find(text)); err != nil {
			return nil // never: the host then misses an answer, and stops
		}
	}
	return out.Bytes()
}

// write goes on after a failure without writing, so that nobody waits for it.
func write(out io.Writer, order <-chan *batch) (err error) {
	for b := range order {
		answers := <-b.answers
		if err == nil {
			_, err = out.Write(answers)
		}
	}
	return err
}

func next(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
	if err != nil || n < 0 || n > maxText {
		return "", errors.New("bad length")
	}
	var text strings.Builder
	text.Grow(n)
	if _, err := io.CopyN(&text, in, int64(n)); err != nil {
		return "", io.ErrUnexpectedEOF
	}
	return text.String(), nil
}
