package guestfs

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// transferBuffer holds what moves between a stream and something else.
type transferBuffer [wire.DataFrame]byte

var transferBuffers = sync.Pool{New: func() any { return new(transferBuffer) }}

// copyData sends content to its end.
func copyData(data *wire.DataWriter, content io.Reader) error {
	for {
		_, err := data.Next(content.Read)
		if errors.Is(err, io.EOF) {
			return data.End()
		}
		if err != nil {
			return err
		}
	}
}

// retryOnce performs an operation, and again if its wire turned out to be broken.
// The operation must do no harm when it is repeated.
func retryOnce(ctx context.Context, f func() error) error {
	err := f()
	if errors.Is(err, machine.ErrLost) && ctx.Err() == nil {
		err = f()
	}
	return err
}
