// Package sftp serves the files of the sandbox over SFTP, on standard input and output. It
// runs as an ordinary process inside: it reaches what the user of the sandbox reaches.
package sftp

import (
	"errors"
	"io"

	"github.com/pkg/sftp"
)

// Run serves one client until it leaves. Relative paths begin at the working directory.
func Run(in io.Reader, out io.WriteCloser) error {
	server, err := sftp.NewServer(stream{in, out})
	if err != nil {
		return err
	}
	if err := server.Serve(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// stream is input and output as one.
type stream struct {
	io.Reader
	io.WriteCloser
}
