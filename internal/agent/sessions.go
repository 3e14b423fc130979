package agent

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/tool"
)

// transcriptSuffix ends the names of transcripts.
const transcriptSuffix = ".jsonl"

const (
	// maxKept bounds a transcript that is shown to a model.
	maxKept = 64 << 20
	// titleBytes is how much of a transcript is read for its first words.
	titleBytes = 64 << 10
	titleRunes = 80
)

// Sessions shows transcripts to a session: its own, and with All those of every
// session of the same agent and account, which share a directory.
type Sessions struct {
	Dir string
	Own string // id of the session's own transcript
	All bool
}

var _ tool.Sessions = Sessions{}

// List implements tool.Sessions, the latest first.
func (s Sessions) List(_ context.Context, most int) ([]tool.SessionInfo, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []tool.SessionInfo
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), transcriptSuffix)
		info, err := e.Info()
		if !ok || !s.visible(id) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		list = append(list, tool.SessionInfo{ID: id, Own: id == s.Own, Changed: info.ModTime(), Size: info.Size()})
	}
	slices.SortFunc(list, func(a, b tool.SessionInfo) int {
		return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.ID, b.ID))
	})
	list = list[:min(len(list), most)]
	for i := range list {
		list[i].Title = s.title(list[i].ID)
	}
	return list, nil
}

func (s Sessions) visible(id string) bool { return s.All || id == s.Own }

// maxID bounds the id of a conversation: it is part of a file's name.
const maxID = 200

// File is where the transcript of an id is, or will be.
func (s Sessions) File(id string) (string, error) {
	if id == "" || len(id) > maxID || id != filepath.Base(id) || strings.HasPrefix(id, ".") || strings.ContainsFunc(id, unicode.IsControl) {
		return "", fmt.Errorf("session id %q cannot be the name of a file", shorten(id))
	}
	return filepath.Join(s.Dir, id+transcriptSuffix), nil
}

// title returns the beginning of the first message.
func (s Sessions) title(id string) string {
	file, err := os.Open(filepath.Join(s.Dir, id+transcriptSuffix))
	if err != nil {
		return ""
	}
	defer file.Close()
	lines := bufio.NewScanner(io.LimitReader(file, titleBytes))
	lines.Buffer(nil, titleBytes)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Message != nil && e.Message.Role == chat.User {
			words := []rune(strings.Join(strings.Fields(e.Message.Text), " "))
			return string(words[:min(len(words), titleRunes)])
		}
	}
	return ""
}

// History implements tool.Sessions.
func (s Sessions) History(_ context.Context, id string, most int) ([]tool.SessionMessage, error) {
	id = cmp.Or(id, s.Own)
	if !s.visible(id) {
		return nil, fmt.Errorf("there is no conversation %q that this session may look at", shorten(id))
	}
	path, err := s.File(id)
	if err != nil {
		return nil, err
	}
	messages, err := ReadTranscript(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no conversation %q", id)
	}
	if err != nil {
		return nil, err
	}
	messages = messages[max(0, len(messages)-most):]
	list := make([]tool.SessionMessage, len(messages))
	for i, m := range messages {
		list[i] = tool.SessionMessage{Role: string(m.Role), Text: m.Text}
		for _, c := range m.Calls {
			list[i].Calls = append(list[i].Calls, c.Name)
		}
	}
	return list, nil
}

// ReadTranscript returns the conversation of a transcript that may be in use,
// and changes nothing.
func ReadTranscript(path string) ([]chat.Message, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxKept {
		return nil, fmt.Errorf("the conversation is larger than %d MiB", maxKept>>20)
	}
	t := &Transcript{file: file, begun: map[string]bool{}, dated: true}
	if _, err := t.read(); err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	return t.messages, nil
}
