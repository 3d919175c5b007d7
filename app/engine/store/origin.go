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

// Origin is the provenance of a result, for citation and reproduction. It is written to
// every file whose format allows it.
type Origin struct {
	Molrun     string // version of molrun; "" if unknown
	Engine     string // engine with its version and model
	Conditions string // textual description; "" if there is none
	Digest     []byte // SHA-256 of the input
}

// Version returns the version of molrun, or "unknown".
func (o Origin) Version() string {
	if o.Molrun == "" {
		return "unknown"
	}
	return o.Molrun
}

// Hex returns the digest in hexadecimal.
func (o Origin) Hex() string { return hex.EncodeToString(o.Digest) }

// Program returns the names of molrun and the engine.
func (o Origin) Program() string { return "molrun " + o.Version() + ", " + o.Engine }

// Lines returns the origin as lines for a file, of at most 69 characters unless the
// engine's name is longer.
func (o Origin) Lines() []string {
	lines := []string{"molrun " + o.Version(), o.Engine}
	if o.Conditions != "" {
		lines = append(lines, o.Conditions)
	}
	return append(lines, "SHA-256 of the input:", o.Hex())
}

// Short returns the origin as one line of at most 80 characters, with the first digits of
// the digest.
func (o Origin) Short() string {
	return fmt.Sprintf("molrun %.20s, %.24s, input SHA-256 %.16s", o.Version(), o.Engine, o.Hex())
}

// SVG adds the origin to a picture, as metadata that is not displayed.
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

// pngHeader is the length of the start of every PNG file: the signature and the IHDR
// chunk.
const pngHeader = 8 + 25

// PNG adds the origin to a picture, as a text chunk.
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
