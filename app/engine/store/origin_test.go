package store

import (
	"bytes"
	"encoding/xml"
	"image"
	"image/png"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestOrigin(t *testing.T) {
	o := Origin{Molrun: "1.2.3", Engine: "cg-condensate 1, CALVADOS 2, one bead per residue", Conditions: "293 K & pH < 7", Digest: bytes.Repeat([]byte{0xab, 0xcd}, 16)}
	for _, line := range o.Lines() {
		if len(line) > 69 {
			t.Errorf("too long for a remark of a PDB file: %q", line)
		}
	}
	if line := o.Short(); len(line) > 80 || !strings.Contains(line, "molrun 1.2.3") || !strings.Contains(line, "abcdabcdabcdabcd") {
		t.Error(line)
	}
	must.Contain(t, "without a version", strings.Join(Origin{Engine: "x"}.Lines(), "\n"), "molrun unknown")

	var drawn bytes.Buffer
	must.OK(t, png.Encode(&drawn, image.NewGray(image.Rect(0, 0, 3, 2))))
	marked := o.PNG(drawn.Bytes())
	if img, err := png.Decode(bytes.NewReader(marked)); err != nil || img.Bounds().Dx() != 3 || !bytes.Contains(marked, []byte("tEXtSoftware\x00molrun 1.2.3\n")) {
		t.Errorf("%v, %q", err, marked)
	}
	must.Equal(t, "no PNG", string(o.PNG([]byte("x"))), "x")

	svg := o.SVG([]byte("<?xml version=\"1.0\"?>\n<svg width=\"3\">\n<g/></svg>\n"))
	var read struct {
		Metadata string `xml:"metadata"`
	}
	must.OK(t, xml.Unmarshal(svg, &read))
	must.Equal(t, "metadata", read.Metadata, strings.Join(o.Lines(), "\n"))
	must.Equal(t, "no SVG", string(o.SVG([]byte("x"))), "x")
}
