// Package wire is the protocol between package machine on the host and package
// guest inside a sandbox: the handshake, the multiplexed connection, message and
// frame formats, the limits of both sides and the error codes. It starts no
// processes and links nothing but the standard library, yamux and x/sys, because
// it is part of the guest.
//
// # The protocol
//
// The host opens a connection, both sides say hello, and from then on the
// connection carries multiplexed streams. Each stream is one operation.
//
//	host                                                   guest
//	  │ ── magic, hello {min,max,client,epoch,kind,features} ▶ │  refused: too old, too new, stale
//	  │ ◀─ magic, welcome {version,boot,features} or {error} ─ │  epoch, too many, feature missing
//	  │                                                       │
//	  │ ═══════════ yamux: host opens every stream ══════════ │
//	  │                                                       │
//	  │ ── stream: request {op:"ping"} ─────────────────────▶ │
//	  │ ◀────────────────────────────────── Result or Error ── │
//	  │                                                       │
//	  │ ── stream: request {op:"exec",exec:{id,argv,…}} ────▶ │  or op:"attach", to a process
//	  │ ◀───────────────────────────── Started (attach only) ── │  that outlived its wire
//	  │ ── Stdin* StdinEOF ─────────────────────────────────▶ │
//	  │ ◀─────────────────────── (Stdout | Stderr | Gap)* ─── │  as it happens
//	  │ ◀────────────────────────────────── Exit or Error ─── │
//	  │ ── close (the host has the result) ─────────────────▶ │  the guest forgets the process
//	  │                                                       │
//	  │ ── stream: request {op:"end",process:{id,…}} ───────▶ │  beside it: unread stdin
//	  │ ◀─────────────────────────────────────────── Result ── │  cannot delay an end
//
// A request is a length (u32, big endian) and a JSON object. A frame is a type
// (u8), a length (u32, big endian) and that many bytes. Strings that are not
// UTF-8 travel as [Text].
//
// # Wires, clients and epochs
//
// A host process is a client with a random name; several may talk to one guest
// (a gateway and a command line verb, say). A client holds at most one wire of
// each kind: control for commands, bulk for large transfers, so that a file
// never delays a command. When it dials again it counts its epoch up; the guest
// closes the client's older wires and refuses a hello with a lower epoch, so
// that a wire believed dead cannot come back and act.
//
// # Direct connections
//
// A third kind of connection is direct: it is not multiplexed, and one request
// follows the other. Files travel over direct connections that belong to the
// bulk wire, short commands without input over those of the control wire. The
// guest admits one only with a token that it gave out over that wire, and closes
// it together with the wire. Where none can be had, a stream does the same.
//
// All output of a short command and its exit come in one message. For a command
// that is not over soon the guest answers Started instead, and the host attaches
// to it over a stream. The next request, or op:"taken", says that the host has
// the result; the guest keeps it until then.
//
// A program that only runs commands opens a direct connection without a wire
// beside it: hello and first request come in one message. A command that is not
// over soon, or has input, is then streamed over the connection itself, whose end
// is the end of the command.
//
//	│ ── magic, hello {…,kind:"direct",needs}, request ───▶ │
//	│ ◀─────────── welcome, (Stdout | Stderr)*, Exit ────── │  a short command
//	│ ── request ─────────────────────────────────────────▶ │  the next
//	│ ◀──────────── Started, (Stdout | Stderr)*, Exit ────── │  one that is not
//
// # Ports
//
// Connections to ports inside are streams, too. The host opens them all: to
// accept a connection it opens a stream on which the guest answers when one has
// come. So a guest cannot make more of them than the host is ready for. Listeners
// on addresses of names share the streams of a group, and a UDP port is one stream
// of datagrams: the guest passes them on and reads nothing in them.
//
// # Versions and features
//
// Both sides say which versions they speak, and the highest that both do is
// spoken. A host speaks the previous one, too, because a sandbox may outlive an
// upgrade of its host: recordings of older guests are part of package machine's
// tests.
//
//	1  commands, files, ports
//	2  grants: commands started under one, callers of ports told by theirs
//
// What came since has no version but a name: both sides announce their features
// ([Feature]). A host does not send a guest what belongs to a feature that it
// lacks, and says so. Names that the other side does not know are ignored.
//
// # Trust
//
// Neither side trusts the other. No length is believed before its bytes have
// arrived; what exceeds a limit of this package ends the wire.
package wire
