package api

import "time"

// ExecRequest is a command to run in a sandbox: exactly one of argv and command.
type ExecRequest struct {
	Argv           []string          `json:"argv,omitempty" doc:"The program and its arguments."`
	Command        string            `json:"command,omitempty" doc:"A command line for /bin/sh -lc."`
	Env            map[string]string `json:"env,omitempty" doc:"More variables of its environment."`
	Dir            string            `json:"dir,omitempty" doc:"Working directory; relative ones begin at the sandbox's own."`
	Stdin          []byte            `json:"stdin,omitempty" doc:"Its standard input, at most 3 MiB in base64."`
	TimeoutSeconds float64           `json:"timeoutSeconds,omitzero" doc:"After which it is ended, with exit code 124 in the style of timeout(1); none if left out."`
	OutputBytes    int64             `json:"outputBytes,omitzero" min:"1" max:"4194304" doc:"Of each output, where the answer is no stream: of a longer one the beginning and the end are kept; 1 MiB if left out."`
}

// ExecResult is how a command ended. A command that failed is a result, not a problem.
type ExecResult struct {
	ExitCode   int        `json:"exitCode" doc:"128 and the number of the signal if one ended it, 127 if the program was not found, 126 if it could not be run."`
	Signal     string     `json:"signal,omitempty"`
	TimedOut   bool       `json:"timedOut,omitzero"`
	OOM        bool       `json:"oom,omitzero" doc:"It was killed because memory ran out."`
	QuotaFull  string     `json:"quotaFull,omitempty" doc:"It was ended because the workspace is full."`
	Error      string     `json:"error,omitempty" doc:"Why it did not start."`
	Stdout     string     `json:"stdout" doc:"Empty on a stream, whose events have it. Bytes that are no UTF-8 are replaced."`
	Stderr     string     `json:"stderr"`
	StdoutLost int64      `json:"stdoutLost,omitzero" doc:"Bytes that were left out in the middle."`
	StderrLost int64      `json:"stderrLost,omitzero"`
	DurationMs int64      `json:"durationMs"`
	Usage      *ExecUsage `json:"usage,omitempty"`
}

// ExecUsage is what a command used.
type ExecUsage struct {
	UserMs      int64 `json:"userMs" doc:"CPU time in programs."`
	SystemMs    int64 `json:"systemMs" doc:"CPU time in the kernel."`
	MemoryBytes int64 `json:"memoryBytes" doc:"The most memory of one of its processes."`
}

// The events of a command's stream.
const (
	ExecStarted = "started" // data is an ExecStart
	ExecStdout  = "stdout"  // data is an ExecOutput
	ExecStderr  = "stderr"  // data is an ExecOutput
	ExecEnded   = "ended"   // data is an ExecResult
	ExecProblem = "problem" // data is a Problem: why the stream ended without a result
)

// ExecStart is the first event of a command's stream.
type ExecStart struct {
	At time.Time `json:"at"`
}

// ExecOutput is a part of what a command wrote.
type ExecOutput struct {
	Data []byte `json:"data" doc:"In base64, as it was written."`
	Lost int64  `json:"lost,omitzero" doc:"Bytes before it that are not there any more: a process in the background keeps the beginning and the end of what nobody follows."`
}

// StartProcess is a command to start in the background, where it goes on until it ends
// or its sandbox does.
type StartProcess struct {
	Argv           []string          `json:"argv,omitempty" doc:"The program and its arguments."`
	Command        string            `json:"command,omitempty" doc:"A command line for /bin/sh -lc."`
	Env            map[string]string `json:"env,omitempty" doc:"More variables of its environment."`
	Dir            string            `json:"dir,omitempty" doc:"Working directory; relative ones begin at the sandbox's own."`
	TimeoutSeconds float64           `json:"timeoutSeconds,omitzero" doc:"After which it is ended; none if left out."`
	Stdin          bool              `json:"stdin,omitzero" doc:"Keep its standard input open for later input; else it is empty."`
	Terminal       *TerminalSize     `json:"terminal,omitempty" doc:"Give it a terminal of this size; both outputs are then stdout, and its input is open."`
}

// TerminalSize is the size of a terminal.
type TerminalSize struct {
	Rows int `json:"rows" min:"1" max:"1000"`
	Cols int `json:"cols" min:"1" max:"1000"`
}

// Process is a command in the background of a sandbox.
type Process struct {
	ID          string      `json:"id"`
	PID         int         `json:"pid" doc:"Inside the sandbox."`
	Command     string      `json:"command" doc:"For people: shortened."`
	Terminal    bool        `json:"terminal,omitzero"`
	Started     time.Time   `json:"started"`
	StdoutBytes int64       `json:"stdoutBytes" doc:"Written so far."`
	StderrBytes int64       `json:"stderrBytes"`
	Running     bool        `json:"running"`
	Result      *ExecResult `json:"result,omitempty" doc:"Once it has ended."`
}

// Processes are the commands in the background of a sandbox.
type Processes struct {
	Processes []Process `json:"processes"`
}

// ProcessQuery waits for the end of a process.
type ProcessQuery struct {
	WaitSeconds int `query:"waitSeconds" min:"1" max:"300" doc:"Answer when it has ended, or after so many seconds; at once if not given."`
}

// OutputQuery says where the output of a process begins.
type OutputQuery struct {
	Stdout int64 `query:"stdout" min:"0" doc:"Offset in its standard output."`
	Stderr int64 `query:"stderr" min:"0" doc:"Offset in its standard error."`
}

// ProcessOutput is a part of what a process has written: of a long output the beginning
// and the end are kept.
type ProcessOutput struct {
	Stdout     []byte  `json:"stdout"`
	Stderr     []byte  `json:"stderr"`
	StdoutLost int64   `json:"stdoutLost,omitzero" doc:"Bytes that were left out."`
	StderrLost int64   `json:"stderrLost,omitzero"`
	StdoutNext int64   `json:"stdoutNext" doc:"Offset to go on at."`
	StderrNext int64   `json:"stderrNext"`
	Process    Process `json:"process"`
}

// ProcessInput is what a process reads from its standard input.
type ProcessInput struct {
	Data []byte `json:"data,omitempty" doc:"At most 3 MiB in base64."`
	End  bool   `json:"end,omitzero" doc:"Close its standard input after that."`
}

// ProcessSignal is a signal to a process.
type ProcessSignal struct {
	Signal string `json:"signal" doc:"Such as SIGINT."`
	Tree   bool   `json:"tree,omitzero" doc:"To all its descendants too."`
}

// ProcessChanged is the process as it was when it was changed.
type ProcessChanged struct {
	ID string `json:"id"`
}

// TerminalControl is a text message to the terminal of a process, over a WebSocket at
// /api/v1/sandboxes/{id}/processes/{process}/terminal. What is typed is sent as binary
// messages of at most 64 KiB, what the terminal shows comes as binary messages.
type TerminalControl struct {
	Resize *TerminalSize `json:"resize"`
}

// The types of a TerminalEvent.
const (
	TerminalLost  = "lost"  // Bytes that are not there any more
	TerminalEnded = "ended" // the process has, with Result
)

// TerminalEvent is a text message of the terminal of a process.
type TerminalEvent struct {
	Type   string      `json:"type" enum:"lost|ended"`
	Bytes  int64       `json:"bytes,omitzero"`
	Result *ExecResult `json:"result,omitempty"`
}
