package rootfs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// zstdLayer is a layer compressed by zstd.
type zstdLayer struct{ plain, packed []byte }

func hashOf(data []byte) (v1.Hash, error) {
	sum := sha256.Sum256(data)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}, nil
}

func (l *zstdLayer) Digest() (v1.Hash, error) { return hashOf(l.packed) }
func (l *zstdLayer) DiffID() (v1.Hash, error) { return hashOf(l.plain) }
func (l *zstdLayer) Size() (int64, error)     { return int64(len(l.packed)), nil }

func (l *zstdLayer) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.packed)), nil
}

func (l *zstdLayer) Uncompressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.plain)), nil
}

func (l *zstdLayer) MediaType() (types.MediaType, error) { return types.OCILayerZStd, nil }
