package rest

import "time"

// Limit bounds requests, streams and logs; zero is the default.
type Limit struct {
	Body      int64         // bytes of a request's body; 5 MiB
	Message   int64         // of the body of a message, which may have attachments; 25 MiB
	Send      time.Duration // until a reader of events has taken one; 30 s
	Heartbeat time.Duration // between heartbeats on an event stream; 15 s
	Poll      time.Duration // between reads of a run that another process executes; 1 s
	Streams   int           // of events, of one caller at once; 100
	Log       int64         // bytes of events that are kept of a session's task; 1 MiB
	Logs      int64         // of all tasks together, above which what grows is cut to reducedLog; 64 MiB
	KeepLog   time.Duration // that events of a task are kept after its end; 1 min
}

func (l *Limit) fill() {
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{{&l.Send, 30 * time.Second}, {&l.Heartbeat, 15 * time.Second}, {&l.Poll, time.Second}, {&l.KeepLog, time.Minute}} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	if l.Body == 0 {
		l.Body = 5 << 20
	}
	if l.Message == 0 {
		l.Message = 25 << 20
	}
	if l.Log == 0 {
		l.Log = 1 << 20
	}
	if l.Logs == 0 {
		l.Logs = 64 << 20
	}
	if l.Streams == 0 {
		l.Streams = 100
	}
}
