package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// maxLine bounds one entry of a transcript.
const maxLine = 32 << 20

// entry is a line of a transcript.
type entry struct {
	Type      string        `json:"type"` // "session", "message", "begin", "compaction"
	Time      time.Time     `json:"timestamp"`
	Version   int           `json:"version,omitzero"`   // of a session
	ID        string        `json:"id,omitempty"`       // of a session
	Message   *chat.Message `json:"message,omitempty"`  // of a message
	CallID    string        `json:"callId,omitempty"`   // of a begin
	Kept      int           `json:"kept,omitzero"`      // of a compaction: how many of the last messages go on
	Replaces  *chat.Message `json:"replaces,omitempty"` // of a compaction: what stands for the others
	Estimated int64         `json:"estimated,omitzero"`
}

const transcriptVersion = 1

// Transcript is a conversation in a file, a line an entry. What Add returned nil
// for is on disk. It is used by one run at a time, and within a run by several
// goroutines.
type Transcript struct {
	mu       sync.Mutex
	file     *os.File
	messages []chat.Message
	begun    map[string]bool // calls, since the last answer
	broken   error           // after a failed write nothing more is written
	recorded int             // bytes of pictures on disk
	dated    bool            // messages that are read say when they were written
}

// OpenTranscript reads a transcript, or begins one. A line that a crash left
// unfinished is cut off: it never had an effect. Anything else that cannot be
// read is an error, and the file stays as it is.
func OpenTranscript(path, id string) (*Transcript, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	t := &Transcript{file: file, begun: map[string]bool{}}
	if err := t.load(id); err != nil {
		return nil, errors.Join(fmt.Errorf("transcript %s: %w", path, err), file.Close())
	}
	return t, nil
}

// Close closes the file.
func (t *Transcript) Close() error { return t.file.Close() }

// Messages is the conversation as a model sees it.
func (t *Transcript) Messages() []chat.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]chat.Message(nil), t.messages...)
}

// Add appends a message. Of its pictures the disk has as many as maxRecorded allows.
func (t *Transcript) Add(m chat.Message) error {
	return t.write(&entry{Type: "message", Message: &m})
}

// begin notes that a call is about to be carried out.
func (t *Transcript) begin(c *chat.Call) error {
	t.mu.Lock()
	again := t.begun[c.ID]
	t.mu.Unlock()
	if again {
		return fmt.Errorf("call %s was already begun", c.ID)
	}
	return t.write(&entry{Type: "begin", CallID: c.ID})
}

// closeOpenCalls adds a result "interrupted" to every call of the last answer that has
// none: protocols want one for each, and no call is repeated.
func (t *Transcript) closeOpenCalls() error {
	for _, m := range t.interruptedResults() {
		if err := t.Add(m); err != nil {
			return err
		}
	}
	return nil
}

// interruptedResults returns results for the calls that have none.
func (t *Transcript) interruptedResults() (results []chat.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.messages) - 1
	answered := map[string]bool{}
	for ; last >= 0 && t.messages[last].Role == chat.Tool; last-- {
		answered[t.messages[last].CallID] = true
	}
	if last < 0 || t.messages[last].Role != chat.Assistant {
		return nil
	}
	for _, c := range t.messages[last].Calls {
		if answered[c.ID] {
			continue
		}
		text := "Not done: the run ended before this call began."
		if t.begun[c.ID] {
			text = "Interrupted: the run ended during this call. Whether it had an effect is unknown; look before you repeat it."
		}
		results = append(results, chat.Message{Role: chat.Tool, CallID: c.ID, Text: text, IsError: true})
	}
	return results
}

func (t *Transcript) write(e *entry) error {
	e.Time = time.Now().UTC()
	line, err := json.Marshal(t.onDisk(e))
	if err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	if len(line) >= maxLine {
		return &Error{Code: CodeRecord, Text: fmt.Sprintf("transcript: an entry of %d bytes is more than %d", len(line), maxLine)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken != nil {
		return t.broken
	}
	if _, err = t.file.Write(append(line, '\n')); err == nil {
		err = t.file.Sync()
	}
	if err != nil {
		t.broken = &Error{Code: CodeRecord, Text: "transcript: " + err.Error(), Err: err}
		return t.broken
	}
	t.apply(e)
	return nil
}

// apply makes an entry part of the conversation.
func (t *Transcript) apply(e *entry) {
	switch {
	case e.Type == "begin":
		t.begun[e.CallID] = true
	case e.Type == "message" && e.Message != nil:
		if e.Message.Role == chat.Assistant {
			clear(t.begun)
		}
		t.messages = append(t.messages, *e.Message)
		t.recorded += imageBytes(e.Message)
		dropOldImages(t.messages)
	case e.Type == "compaction" && e.Replaces != nil && e.Kept >= 0 && e.Kept <= len(t.messages):
		kept := t.messages[len(t.messages)-e.Kept:]
		t.messages = append([]chat.Message{*e.Replaces}, kept...)
	}
}

func (t *Transcript) load(id string) error {
	whole, err := t.read()
	if err != nil {
		return err
	}
	if err := t.file.Truncate(whole); err != nil {
		return err
	}
	if _, err := t.file.Seek(whole, io.SeekStart); err != nil {
		return err
	}
	if whole == 0 {
		return t.write(&entry{Type: "session", Version: transcriptVersion, ID: id})
	}
	return nil
}

// read applies every whole line, and returns where they end.
func (t *Transcript) read() (whole int64, err error) {
	lines := bufio.NewReaderSize(t.file, 64<<10)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return 0, err
		}
		var e entry
		if err := json.Unmarshal(bytes.TrimSpace(line), &e); err != nil {
			return 0, fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 && (e.Type != "session" || e.Version != transcriptVersion) {
			return 0, fmt.Errorf("line 1: not a transcript of version %d", transcriptVersion)
		}
		if e.Message != nil && t.dated {
			e.Message.At = e.Time
		}
		t.apply(&e)
		whole += int64(len(line))
	}
}
