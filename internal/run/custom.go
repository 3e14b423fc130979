package run

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/envelope"
)

// Custom is an agent of the configuration: any program that takes a task and prints an
// answer. In Argv, Env and Files {task}, {task-file}, {model}, {run},
// {workspace}, {home}, {base-url} and {seconds} are replaced.
type Custom struct {
	ID, Name, Description string
	Image, User           string
	Argv                  []string
	Env                   map[string]string
	Files                 map[string]string // by path in the home
	// Read is "envelope", "text" or "json"; with the last, Answer and Failure are
	// members, names joined by points. Presets have more.
	Read, Answer, Failure string
	Stream                string // the event stream on its standard output; "" is none
	Timeout               time.Duration
	Memory                int64
}

// What a custom agent gets that does not say otherwise.
const (
	customTimeout = 600 * time.Second
	customMemory  = 1024 << 20
)

// Variant is the agent as an entry of the registry.
func (c Custom) Variant() Variant {
	v := Variant{
		ID: c.ID, Name: nonempty(c.Name, c.ID), Description: c.Description, Image: c.Image, User: c.User,
		Timeout: customTimeout, Memory: customMemory, Argv: c.argv, Env: c.env, Files: c.files, Read: c.read, OnDirectory: true,
		Stream: streamReaders()[c.Stream],
	}
	if c.Timeout > 0 {
		v.Timeout = c.Timeout
	}
	if c.Memory > 0 {
		v.Memory = c.Memory
	}
	v.Margin = min(v.Timeout/10, 60*time.Second)
	return v
}

// WithStream returns the agent as a program that prints the named event stream, in
// which its answer is.
func (c Custom) WithStream(name string) Custom {
	c.Stream, c.Read, c.Answer, c.Failure = name, name, "", ""
	if name == claudeStream {
		c.Read, c.Answer, c.Failure = "json", "result", "is_error"
	}
	return c
}

// Check finds everything that is wrong with the agent.
func (c Custom) Check() (problems []string) {
	add := func(bad bool, text string) {
		if bad {
			problems = append(problems, text)
		}
	}
	add(len(c.Argv) == 0, "argv is missing: the program and its arguments")
	_, stream := answerReaders()[c.Read]
	add(c.Read != "" && !stream && !slices.Contains([]string{"envelope", "text", "json"}, c.Read), "read is none of envelope, text and json")
	add(c.Read == "json" && c.Answer == "", "answer is missing: the member of the JSON object that is the answer")
	add(c.Read != "json" && c.Answer+c.Failure != "", "answer and failure are for read: \"json\"")
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		local := path.Clean(name)
		add(local != name || path.IsAbs(name) || local == "." || strings.HasPrefix(local, ".."), "files: "+strconv.Quote(name)+" is no plain path in the workspace")
	}
	return problems
}

func (c Custom) replacer(j *Job) *strings.Replacer {
	return strings.NewReplacer(
		"{task}", j.Task(), "{task-file}", j.Home+"/"+promptFile, "{model}", j.Model, "{run}", j.ID,
		"{workspace}", j.Workspace, "{home}", j.Home, "{base-url}", modelURL, "{seconds}", strconv.Itoa(max(int(j.Inner/time.Second), 1)),
	)
}

func (c Custom) argv(j *Job) ([]string, error) {
	replace := c.replacer(j)
	argv := make([]string, len(c.Argv))
	for i, arg := range c.Argv {
		if argv[i] = replace.Replace(arg); len(argv[i]) > maxArgument {
			return nil, fail("prompt_too_large", "argument %d has %d bytes with the task in it; Linux takes at most %d: give the program {task-file} instead", i, len(argv[i]), maxArgument)
		}
	}
	return argv, nil
}

func (c Custom) env(j *Job) map[string]string {
	replace, env := c.replacer(j), map[string]string{"HOME": j.Home}
	for name, value := range c.Env {
		env[name] = replace.Replace(value)
	}
	return env
}

func (c Custom) files(j *Job) ([]File, error) {
	before, err := history(j)
	if err != nil {
		return nil, err
	}
	files := []File{{Path: promptFile, Mode: 0o600, Data: []byte(j.Task())}, {Path: historyFile, Mode: 0o600, Data: before}}
	replace := c.replacer(j)
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		files = append(files, File{Path: name, Mode: 0o600, Data: []byte(replace.Replace(c.Files[name]))})
	}
	return files, nil
}

func (c Custom) read(stdout []byte) (*envelope.Envelope, error) {
	if line, ok := answerReaders()[c.Read]; ok {
		return c.readStream(stdout, line)
	}
	switch c.Read {
	case "text":
		return c.readText(stdout)
	case "json":
		return c.readJSON(stdout)
	}
	return envelope.Parse(stdout)
}

func (c Custom) readText(stdout []byte) (*envelope.Envelope, error) {
	text := strings.TrimSpace(strings.ToValidUTF8(string(stdout), "\uFFFD"))
	if text == "" {
		return nil, envelope.ErrNone
	}
	return answerOf(text), nil
}

// readJSON finds the answer in the last line that is an object: programs that
// tell what they do as they go print one a line.
func (c Custom) readJSON(stdout []byte) (*envelope.Envelope, error) {
	object := lastObject(stdout)
	if object == nil {
		return nil, envelope.ErrNone
	}
	text, ok := member(object, c.Answer).(string)
	if failure := member(object, c.Failure); failure != nil && failure != false && failure != "" {
		e := answerOf(text)
		e.Meta.Error = &envelope.Error{Kind: "agent_error", Message: nonempty(text, "the agent reports a failure")}
		return e, nil
	}
	if !ok {
		return nil, fail("invalid_output", "there is no text at %q", c.Answer)
	}
	return answerOf(text), nil
}

func answerOf(text string) *envelope.Envelope {
	return &envelope.Envelope{Payloads: []envelope.Payload{{Text: text}}}
}

func lastObject(out []byte) map[string]any {
	var whole map[string]any
	if json.Unmarshal(out, &whole) == nil {
		return whole
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range slices.Backward(lines) {
		var object map[string]any
		if json.Unmarshal([]byte(line), &object) == nil && object != nil {
			return object
		}
	}
	return nil
}

// member finds a value by names joined by points; nil if it is not there.
func member(object map[string]any, names string) any {
	var at any = object
	if names == "" {
		return nil
	}
	for name := range strings.SplitSeq(names, ".") {
		inner, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = inner[name]
	}
	return at
}
