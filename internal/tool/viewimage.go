package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // for the size of a picture
	_ "image/jpeg" // for the size of a picture
	_ "image/png"  // for the size of a picture

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

const (
	// maxImage bounds a picture's file, and maxSide its width and height: what
	// models accept.
	maxImage = 10 << 20
	maxSide  = 8000
)

type imageArgs struct {
	Path string `json:"path" jsonschema:"PNG, JPEG, GIF or WebP file to look at, relative to the workspace or absolute."`
}

func imageTool() Tool {
	return define(Tool{
		Name:        "view_image",
		Aliases:     []string{"image"},
		Description: "Look at a picture file (PNG, JPEG, GIF, WebP).",
	}, runImage)
}

// imageDetails are the fields of a view_image result.
type imageDetails struct {
	fileDetails
	MediaType string `json:"mediaType"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
}

func runImage(ctx context.Context, c *call, a *imageArgs) (*Result, error) {
	p, err := c.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	content, err := c.at.Files.Read(ctx, p.Container, &guestfs.ReadOptions{Limit: maxImage})
	if err != nil {
		return nil, fileError(p, err)
	}
	if content.More {
		return nil, errhint.With(fileError(p, fmt.Errorf("is %s, over the limit of %s", sizeText(content.Info.Size), sizeText(maxImage))),
			"make a smaller copy with exec")
	}
	picture, err := recognize(content.Data)
	if err != nil {
		return nil, errhint.With(fileError(p, err), "pictures are PNG, JPEG, GIF or WebP files: convert others with exec; read shows text, such as SVG")
	}
	return &Result{
		Text:    fmt.Sprintf("%s: %s, %d×%d, %s", p.Relative, picture.MediaType, picture.Width, picture.Height, sizeText(content.Info.Size)),
		Images:  []Image{*picture},
		Details: imageDetails{detailsOfFile(p, content.Info), picture.MediaType, picture.Width, picture.Height},
	}, nil
}

// recognize finds out by its first bytes what a picture is; a name proves
// nothing. Nothing is decoded but the header.
func recognize(data []byte) (*Image, error) {
	width, height, format := webpSize(data)
	if format == "" {
		header, name, err := image.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			return nil, errors.New("is not a picture that can be shown")
		}
		width, height, format = header.Width, header.Height, name
	}
	if width <= 0 || height <= 0 || width > maxSide || height > maxSide {
		return nil, fmt.Errorf("is a picture of %d×%d, and neither side may be over %d", width, height, maxSide)
	}
	return &Image{MediaType: "image/" + format, Data: data, Width: width, Height: height}, nil
}

// webpSize reads the header of a WebP file, of any of its three kinds. The
// format is "" if it is none.
func webpSize(data []byte) (width, height int, format string) {
	if len(data) < 30 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0, 0, ""
	}
	b := func(at int) int { return int(data[at]) }
	switch kind := string(data[12:16]); {
	case kind == "VP8X":
		return 1 + b(24) + b(25)<<8 + b(26)<<16, 1 + b(27) + b(28)<<8 + b(29)<<16, "webp"
	case kind == "VP8L" && data[20] == 0x2f:
		bits := b(21) + b(22)<<8 + b(23)<<16 + b(24)<<24
		return 1 + bits&0x3fff, 1 + bits>>14&0x3fff, "webp"
	case kind == "VP8 " && data[23] == 0x9d && data[24] == 0x01 && data[25] == 0x2a:
		return (b(26) + b(27)<<8) & 0x3fff, (b(28) + b(29)<<8) & 0x3fff, "webp"
	}
	return 0, 0, ""
}
