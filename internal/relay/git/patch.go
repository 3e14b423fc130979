package git

import (
	"bytes"
	"context"
	"io"

	"github.com/atoll-run/atoll/internal/confined"
)

// Patch renders what commits change, for people and as mail that git can apply.
// Of more than most bytes it keeps the first lines, and reports so.
func (r *Repo) Patch(ctx context.Context, base, head string, most int) (patch []byte, cut bool, err error) {
	var out bytes.Buffer
	kept := &confined.Bounded{To: &out, Left: most}
	err = r.Run(ctx, nil, chunkWriter{kept}, "format-patch", "--stdout", "--no-signature", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color",
		"--no-attach", "--numbered", "--full-index", "--end-of-options", base+".."+head)
	if kept.Exceeded {
		return out.Bytes()[:bytes.LastIndexByte(out.Bytes(), '\n')+1], true, nil
	}
	return out.Bytes(), false, err
}

// chunkWriter writes in small chunks, so that a bound is met closely.
type chunkWriter struct{ to io.Writer }

func (w chunkWriter) Write(p []byte) (written int, err error) {
	for err == nil && written < len(p) {
		var n int
		n, err = w.to.Write(p[written:min(len(p), written+512)])
		written += n
	}
	return written, err
}
