// Package wire is the common ground of the two halves that speak over a
// sandbox's single wire: package machine on the host and package guest inside.
// It holds the handshake, the multiplexed session, message and frame formats,
// the limits of both sides and the error codes. It knows neither processes nor
// containers, and it links nothing but the standard library, yamux and x/sys,
// because it is part of the guest.
//
// # The protocol
//
// The host opens a connection, both sides say hello, and from then on the
// connection carries multiplexed streams. Each stream is one operation.
//
//	host                                                   guest
//	  │ ── magic, hello {min,max,client,epoch,kind} ────────▶ │  refused: too old, too new,
//	  │ ◀──────── magic, welcome {version,boot} or {error} ── │  stale epoch, too many wires
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
//	  │ ── stream: request {op:"end",process:{id,…}} ───────▶ │  beside it: stdin that nobody
//	  │ ◀─────────────────────────────────────────── Result ── │  reads cannot delay an end
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
// Files travel over wires of a third kind, direct ones, which are not
// multiplexed: one request follows the other. The guest admits one only with a
// token that it gave out over another wire, and closes it together with that.
// Where none can be had, a stream of the bulk wire does the same.
//
// Short commands without input take direct wires, too, which then belong to the
// control wire. All output and the exit come in one message. For a command that
// is not over soon the guest answers Started instead, and the host attaches to it
// over a stream. The next request, or op:"taken", says that the host has the
// result; the guest keeps it until then.
//
// A program that runs one command and ends takes a wire of a fourth kind, once:
// greeting and request come in one message, the guest answers with the frames of
// the command, and the end of the wire before the exit is the end of the command.
//
// Connections to ports inside are streams, too. The host opens them all: to
// accept a connection it opens a stream on which the guest answers when one has
// come. So a guest cannot make more of them than the host is ready for.
//
// # Versions
//
// Both sides say which versions they speak, and the highest that both do is
// spoken. A host speaks the previous one, too, because a sandbox may outlive an
// upgrade of its host: recordings of older guests are part of package machine's
// tests. What a version added to requests is listed in additions; a host does not
// send it to a guest that would ignore it, and says so.
//
//	1  commands, files, ports
//	2  grants: commands started under one, callers of ports told by theirs
//
// # Trust
//
// Neither side trusts the other. No length is believed before its bytes have
// arrived; whatever exceeds a limit of this package ends the wire.
package wire
