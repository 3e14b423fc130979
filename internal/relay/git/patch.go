package git

import (
	"bytes"
	"context"
	"io"

	"github.com/atoll-run/atoll/internal/relay/confined"
)

// Patch renders what commits change, for people and as mail that git can apply.
// Of more than most bytes it keeps the first lines, and reports so.
func (r *Repo) Patch(ctx context.Context, base, head string, most int) (patch []byte, cut bool, err error) {
	var out bytes.Buffer
	kept := &confined.Bounded{To: &out, Left: most}
	err = r.Run(ctx, nil, inPieces{kept}, "format-patch", "--stdout", "--no-signature", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color",
		"--no-attach", "--numbered", "--full-index", "--end-of-options", base+".."+head)
	if kept.Exceeded {
		return out.Bytes()[:bytes.LastIndexByte(out.Bytes(), '\n')+1], true, nil
	}
	return out.Bytes(), false, err
}

// inPieces writes what it gets in small pieces, so that a bound is met closely.
type inPieces struct{ to io.Writer }

func (w inPieces) Write(p []byte) (written int, err error) {
	for err == nil && written < len(p) {
		var n int
		n, err = w.to.Write(p[written:min(len(p), written+512)])
		written += n
	}
	return written, err
}
