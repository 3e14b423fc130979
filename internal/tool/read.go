package tool

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy"
)

const (
	readLines  = 2000     // lines shown unless asked for fewer
	readText   = 64 << 10 // bytes shown
	readLine   = 2000     // bytes shown of one line
	readAhead  = 64 << 20 // bytes looked at to find and count lines, or to hash
	lineFormat = "%6d\t"  // as cat -n has it
)

type readArgs struct {
	Path   string `json:"path" jsonschema:"File to read, relative to the workspace or absolute."`
	Offset int64  `json:"offset,omitzero" jsonschema:"First line to show, counted from 1."`
	Limit  int64  `json:"limit,omitzero" jsonschema:"Most lines to show. Default and most: 2000."`
}

func (a *readArgs) check() (problems []error) {
	whole(&problems, "offset", a.Offset, maxLines)
	whole(&problems, "limit", a.Limit, maxLines)
	return problems
}

func readTool() Tool {
	return define(Tool{
		Name:        "read",
		Description: "Read a text file with line numbers; long files in parts with offset and limit.",
	}, runRead)
}

func runRead(ctx context.Context, c *call, a *readArgs) (*Result, error) {
	p, err := c.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	file, err := c.at.Files.Open(ctx, p.Container, nil)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(err, c.remember(ctx, p.Container, ""))
	}
	if err != nil {
		return nil, fileError(p, err)
	}
	defer file.Close()
	text := bufio.NewReaderSize(file, sniffed)
	result, err := readFile(p, file.Info, text, a)
	if err != nil {
		return nil, fileError(p, err)
	}
	return result, c.remember(ctx, p.Container, file.Info.Version)
}

func readFile(p policy.Path, info guestfs.FileInfo, text *bufio.Reader, a *readArgs) (*Result, error) {
	head, err := text.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if isBinary(head) {
		return describeBinary(p, info, text)
	}
	window := &lineWindow{first: max(a.Offset, 1), most: readLines}
	if a.Limit > 0 {
		window.most = min(a.Limit, readLines)
	}
	if err := window.fill(text); err != nil {
		return nil, err
	}
	return window.result(p, info)
}

// lineWindow is the part of a file that is shown.
type lineWindow struct {
	first, most int64

	shown  strings.Builder
	last   int64 // number of the last line shown
	lines  int64 // lines seen so far
	bytes  int64 // bytes seen so far
	cut    int   // lines of which only the beginning is shown
	odd    bool  // there were bytes that are not UTF-8
	full   bool  // no more fits
	atEnd  bool  // all of the file was seen
	unseen bool  // the first line was not reached
}

// fill reads the file up to its end, or as far as is looked at.
func (w *lineWindow) fill(text *bufio.Reader) error {
	for w.bytes < readAhead {
		line, length, err := nextLine(text)
		w.bytes += length
		if length > 0 {
			w.lines++
			w.take(line, length)
		}
		if errors.Is(err, io.EOF) {
			w.atEnd = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	w.unseen = w.lines < w.first
	return nil
}

// nextLine reads a line of any length but keeps only its beginning.
func nextLine(text *bufio.Reader) (line []byte, length int64, err error) {
	for {
		part, err := text.ReadSlice('\n')
		length += int64(len(part))
		if room := readLine + 4 - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, length, err
		}
	}
}

// take shows a line if it belongs to the window and fits.
func (w *lineWindow) take(line []byte, length int64) {
	if w.lines < w.first || w.lines >= w.first+w.most || w.full {
		return
	}
	raw := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
	kept, cut := cutLine(raw, readLine)
	text := strings.ToValidUTF8(kept, "\uFFFD")
	if cut > 0 {
		w.cut++
		text += fmt.Sprintf("… [line of %s]", sizeText(length))
	}
	if w.shown.Len()+len(text) > readText && w.shown.Len() > 0 {
		w.full = true
		return
	}
	w.odd = w.odd || !utf8.ValidString(kept)
	fmt.Fprintf(&w.shown, lineFormat+"%s\n", w.lines, visible(text))
	w.last = w.lines
}

// visible shows control characters that would otherwise vanish.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' {
			return '␀' + r // the picture of the character
		}
		return r
	}, text)
}

// readDetails are the fields of a read result.
type readDetails struct {
	fileDetails
	FirstLine int64 `json:"firstLine"`
	LastLine  int64 `json:"lastLine"`
	Lines     int64 `json:"lines,omitzero"` // of the whole file, if that is known
	Truncated bool  `json:"truncated"`
}

func (w *lineWindow) result(p policy.Path, info guestfs.FileInfo) (*Result, error) {
	details := readDetails{fileDetails: detailsOfFile(p, info), FirstLine: w.first, LastLine: w.last, Truncated: !w.atEnd || w.last < w.lines}
	if w.atEnd {
		details.Lines = w.lines
	}
	switch {
	case w.unseen:
		return nil, errhint.With(fmt.Errorf("line %d is further than the first %s", w.first, sizeText(readAhead)),
			fmt.Sprintf("use exec: sed -n '%d,+100p' FILE", w.first))
	case w.lines == 0:
		return &Result{Text: "[the file is empty]", Details: details}, nil
	case w.first > w.lines:
		return nil, fmt.Errorf("line %d was asked for, but there are only %d", w.first, w.lines)
	}
	return &Result{Text: w.shown.String() + w.footer(), Details: details}, nil
}

// footer says what is not shown and how to get it.
func (w *lineWindow) footer() string {
	var notes []string
	switch {
	case w.last < w.lines && w.atEnd:
		notes = append(notes, fmt.Sprintf("lines %d to %d of %d; go on with offset %d", w.first, w.last, w.lines, w.last+1))
	case w.last < w.lines || !w.atEnd:
		notes = append(notes, fmt.Sprintf("lines %d to %d of more than %d; go on with offset %d", w.first, w.last, w.lines, w.last+1))
	case w.first > 1:
		notes = append(notes, fmt.Sprintf("lines %d to %d, the last of the file", w.first, w.last))
	}
	if w.cut > 0 {
		notes = append(notes, fmt.Sprintf("%d long lines cut after %d bytes; to see one whole: exec with sed -n 'Np' FILE", w.cut, readLine))
	}
	if w.odd {
		notes = append(notes, "bytes that are not UTF-8 are shown as \uFFFD")
	}
	if notes == nil {
		return ""
	}
	return "[" + strings.Join(notes, ". ") + "]"
}

// binaryDetails are the fields of a result about a file that is no text.
type binaryDetails struct {
	fileDetails
	MediaType string `json:"mediaType"`
	SHA256    string `json:"sha256,omitempty"` // "" if the file is too large to be hashed
}

// describeBinary says what a file is instead of showing it.
func describeBinary(p policy.Path, info guestfs.FileInfo, text *bufio.Reader) (*Result, error) {
	head, _ := text.Peek(512)
	d := binaryDetails{fileDetails: detailsOfFile(p, info), MediaType: http.DetectContentType(head)}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(text, readAhead))
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("%s is not text: %s, %s", p.Relative, d.MediaType, sizeText(info.Size))
	if n == info.Size {
		d.SHA256 = hex.EncodeToString(hash.Sum(nil))
		about += ", SHA-256 " + d.SHA256
	}
	hint := "use exec with file, xxd or strings to look into it"
	if strings.HasPrefix(d.MediaType, "image/") {
		hint = "use view_image to see it"
	}
	return &Result{Text: about + "\nhint: " + hint, Details: d}, nil
}
