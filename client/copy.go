package client

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/atoll-run/atoll/api"
)

// CopyIn sends a directory of this machine, with what is below it, into a directory of a
// sandbox. Symbolic links are not followed: the sandbox leaves them out, and pipes and
// devices are not sent.
func (c *Client) CopyIn(ctx context.Context, id, from, to string) (*api.FileTotals, error) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	defer root.Close()
	reader, writer := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		writer.CloseWithError(writeTar(writer, root.FS()))
	}()
	totals, err := c.WriteArchive(ctx, id, to, reader)
	_ = reader.Close() // what is not read is not sent
	<-done
	return totals, err
}

// writeTar writes the files of a tree as a tar archive.
func writeTar(to io.Writer, tree fs.FS) error {
	archive := tar.NewWriter(to)
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		return addToTar(archive, tree, path, entry)
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

// addToTar adds one file, directory or link.
func addToTar(archive *tar.Writer, tree fs.FS, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = fs.ReadLink(tree, path); err != nil {
			return err
		}
	case !info.Mode().IsRegular() && !info.IsDir():
		return nil
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name, header.Uname, header.Gname = path, "", ""
	if err := archive.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := tree.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(archive, file)
	return err
}
