package store

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"html"
	"strings"
)

// Origin is what made a result, so that it can be cited and computed again. It is in every file
// whose format has a place for it.
type Origin struct {
	Molrun     string // version of molrun; "" if it is not known
	Engine     string // the engine with its version, and its model
	Conditions string // in words; "" for none
	Digest     []byte // SHA-256 of the input
}

// Version is that of molrun.
func (o Origin) Version() string {
	if o.Molrun == "" {
		return "unknown"
	}
	return o.Molrun
}

// Hex is the digest as it is shown.
func (o Origin) Hex() string { return hex.EncodeToString(o.Digest) }

// Program is molrun and the engine.
func (o Origin) Program() string { return "molrun " + o.Version() + ", " + o.Engine }

// Lines are what a file says of its origin, none longer than 69 characters if the engine's name is not.
func (o Origin) Lines() []string {
	lines := []string{"molrun " + o.Version(), o.Engine}
	if o.Conditions != "" {
		lines = append(lines, o.Conditions)
	}
	return append(lines, "SHA-256 of the input:", o.Hex())
}

// Short is a line of at most 80 characters, with the first digits of the digest.
func (o Origin) Short() string {
	return fmt.Sprintf("molrun %.20s, %.24s, input SHA-256 %.16s", o.Version(), o.Engine, o.Hex())
}

// SVG adds the origin to a picture, as metadata that is not drawn.
func (o Origin) SVG(picture []byte) []byte {
	at := bytes.Index(picture, []byte("<svg"))
	if at < 0 {
		return picture
	}
	end := bytes.IndexByte(picture[at:], '>')
	if end < 0 {
		return picture
	}
	metadata := "\n<metadata>" + html.EscapeString(strings.Join(o.Lines(), "\n")) + "</metadata>"
	return insert(picture, at+end+1, []byte(metadata))
}

// pngHeader is the length of what begins every PNG: its signature and the chunk of its size.
const pngHeader = 8 + 25

// PNG adds the origin to a picture, as a chunk of text.
func (o Origin) PNG(picture []byte) []byte {
	if len(picture) < pngHeader {
		return picture
	}
	text := "Software\x00" + strings.Join(o.Lines(), "\n")
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	chunk = append(chunk, "tEXt"+text...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return insert(picture, pngHeader, chunk)
}

func insert(content []byte, at int, more []byte) []byte {
	return append(append(append(make([]byte, 0, len(content)+len(more)), content[:at]...), more...), content[at:]...)
}
