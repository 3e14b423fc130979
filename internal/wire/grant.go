package wire

// The operations on grants, since version 2. Each uses Request.Grant and answers
// an empty Result. Processes are started under a grant with Exec.Grant.
//
//	open  opens a grant: with Shared beside those that are open; otherwise it first
//	      ends everything that was started under another grant
//	end   ends everything that was started under it, and closes it; answers the same
//	      if it is not open, because then nothing of it is left
const (
	OpGrantOpen Op = "grant.open"
	OpGrantEnd  Op = "grant.end"
)

// Grant names a grant.
type Grant struct {
	ID      string `json:"id"`
	GraceMs int64  `json:"graceMs,omitempty"` // between TERM and KILL; 0: only KILL
	Shared  bool   `json:"shared,omitempty"`  // of open: leave other grants open. Feature shared-grants.
}

// MaxGrants bounds the grants that are open in one sandbox.
const MaxGrants = 32

// CodeNoGrant is an exec under a grant that is not open.
const CodeNoGrant Code = "no_grant"
