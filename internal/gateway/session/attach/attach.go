// Package attach stores files that come with a message until the task of that
// message is over. Their number and size are bounded, and their type is detected
// from their content, never taken from the sender.
package attach

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Limits of one message.
const (
	MaxFiles = 20
	MaxBytes = 16 << 20 // of all files together
	maxName  = 255      // bytes
)

// ErrInvalid is returned for an attachment that is refused.
var ErrInvalid = errors.New("invalid attachment")

// Upload is a file as it was received.
type Upload struct {
	Name    string
	Content []byte
}

// File describes a stored file.
type File struct {
	Name string `json:"name"`
	Type string `json:"type"` // detected from its content
	Size int64  `json:"size"`
	Sum  string `json:"sha256"`
}

// Decode decodes an attachment in base64, with or without the prefix of a data URL.
func Decode(name, text string) (Upload, error) {
	if strings.HasPrefix(text, "data:") {
		_, after, found := strings.Cut(text, ";base64,")
		if !found {
			return Upload{}, fmt.Errorf("%w %s: a data URL without ;base64,", ErrInvalid, label(name))
		}
		text = after
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Upload{}, fmt.Errorf("%w %s: the content is not base64", ErrInvalid, label(name))
	}
	return Upload{Name: name, Content: content}, nil
}

// Describe checks uploads and returns their descriptions.
func Describe(uploads []Upload) ([]File, error) {
	if len(uploads) > MaxFiles {
		return nil, fmt.Errorf("%w: %d files, at most %d are taken", ErrInvalid, len(uploads), MaxFiles)
	}
	var files []File
	var total int64
	for i, u := range uploads {
		total += int64(len(u.Content))
		switch {
		case len(u.Name) > maxName || !utf8.ValidString(u.Name):
			return nil, fmt.Errorf("%w %d: the name is not text of at most %d bytes", ErrInvalid, i+1, maxName)
		case len(u.Content) == 0:
			return nil, fmt.Errorf("%w %s: it is empty", ErrInvalid, label(u.Name))
		case total > MaxBytes:
			return nil, fmt.Errorf("%w: more than %d MiB in all", ErrInvalid, MaxBytes>>20)
		}
		sum := sha256.Sum256(u.Content)
		files = append(files, File{Name: u.Name, Type: http.DetectContentType(u.Content), Size: int64(len(u.Content)), Sum: hex.EncodeToString(sum[:])})
	}
	return files, nil
}

// label returns a file name as messages show it.
func label(name string) string {
	if name == "" {
		return "without a name"
	}
	return fmt.Sprintf("%.40q", name)
}

// ID returns the directory name of a task's files. It differs for different files.
func ID(account, task string, files []File) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q", account, task)
	for _, f := range files {
		fmt.Fprintf(sum, " %q %s", f.Name, f.Sum)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Notes returns the text, as OpenClaw's clients write it, that lists the files of a
// message. Paths are those in the sandbox.
func Notes(files []File, paths []string) string {
	var b strings.Builder
	for i, f := range files {
		if len(files) == 1 {
			fmt.Fprintf(&b, "[media attached: %s (%s)]\n", paths[i], f.Type)
		} else {
			fmt.Fprintf(&b, "[media attached %d/%d: %s (%s)]\n", i+1, len(files), paths[i], f.Type)
		}
	}
	return b.String()
}
