package runcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
)

// readAttachments reads the files of --attach, within the limits of one message.
func (o *agentOptions) readAttachments(cmd *cobra.Command) (files []attach.Upload, err error) {
	left := int64(attach.MaxBytes)
	for _, path := range o.attach {
		content, err := readAttachment(path, left)
		if err != nil {
			return nil, console.Usage(cmd, errhint.With(fmt.Errorf("--attach: %w", err), fmt.Sprintf("name regular files, at most %d and %d MiB in all", attach.MaxFiles, attach.MaxBytes>>20)))
		}
		left -= int64(len(content))
		files = append(files, attach.Upload{Name: filepath.Base(path), Content: content})
	}
	if _, err := attach.Describe(files); err != nil {
		return nil, console.Usage(cmd, fmt.Errorf("--attach: %w", err))
	}
	return files, nil
}

func readAttachment(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = errors.New("more than " + console.SizeText(attach.MaxBytes) + " in all with " + path)
	}
	return content, err
}

// apiAttachments are files as a gateway is given them.
func apiAttachments(files []attach.Upload) (list []api.Attachment) {
	for _, f := range files {
		list = append(list, api.Attachment{Name: f.Name, Content: f.Content})
	}
	return list
}
