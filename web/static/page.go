package static

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
)

//go:embed page.html
var pageLayout string

//go:embed page.css
var pageStyle string

var pageFrame = template.Must(template.New("page").Parse(pageLayout))

// pagePolicy is the content security policy of pages without scripts. It allows their own
// style, pictures of this site, and forms that submit to it.
var pagePolicy = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; img-src 'self' data:; style-src 'sha256-" + styleDigest(pageStyle) + "'"

// styleDigest returns the digest of a style for a policy.
func styleDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// pageOf returns a page with this body, which must be trusted.
func pageOf(title string, body template.HTML) (file, error) {
	var b bytes.Buffer
	err := pageFrame.Execute(&b, struct {
		Title string
		Style template.CSS
		Body  template.HTML
	}{title, template.CSS(pageStyle), body})
	return newFile(typeOf("page.html"), b.Bytes()), err
}
