// Atoll-leaks looks for secrets in texts that agents wrote: private keys, tokens
// of services, passwords. It is a program and a module of its own, because what
// it reads is hostile and what it is made of is large: the host runs it confined,
// and links nothing of it.
//
// It reads texts, each as its length in decimal, a line feed and so many bytes,
// and answers each with one line of JSON: the rules that it breaks, and where.
// It never says what it found.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/logging"
)

// maxText bounds one text; the host asks for less.
const maxText = 64 << 20

// maxLeaks is how many of one text are told.
const maxLeaks = 20

type leak struct {
	Rule string `json:"rule"`
	Line int    `json:"line"` // from 1
}

func main() {
	if err := serve(bufio.NewReaderSize(os.Stdin, 64<<10), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "atoll-leaks:", err)
		os.Exit(1)
	}
}

func serve(in *bufio.Reader, out io.Writer) error {
	detector, err := newDetector()
	if err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	for {
		text, err := next(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := answers.Encode(find(detector, text)); err != nil {
			return err
		}
	}
}

// newDetector takes the library's own rules. The comments with which a text asks
// to be passed over are ignored: the agent wrote them.
func newDetector() (*detect.Detector, error) {
	const silent = 7
	logging.Logger = logging.Logger.Level(silent)
	detector, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return nil, err
	}
	detector.IgnoreGitleaksAllow = true
	detector.MaxDecodeDepth = 2
	return detector, nil
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
	text := make([]byte, n)
	if _, err := io.ReadFull(in, text); err != nil {
		return "", io.ErrUnexpectedEOF
	}
	return string(text), nil
}

// find gives the rules no path: some pass over files by their names, which the
// agent chose too. Zeros are left out, so that what is written in two-byte
// characters is still words.
func find(detector *detect.Detector, text string) []leak {
	leaks := []leak{}
	for _, found := range detector.Detect(detect.Fragment{Raw: strings.ReplaceAll(text, "\x00", "")}) {
		if len(leaks) == maxLeaks {
			break
		}
		leaks = append(leaks, leak{Rule: found.RuleID, Line: found.StartLine + 1})
	}
	return leaks
}
