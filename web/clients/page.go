package clients

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"runtime"

	"molrun/app/unit"
	"molrun/web/client/python"
)

//go:embed page.html
var layout string

//go:embed page.css
var style string

var page = template.Must(template.New("page").Parse(layout))

// policy is on every answer: the page has its own style and nothing else.
var policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src data:; style-src 'sha256-" + digestOf(style) + "'"

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// download is a row of the page.
type download struct{ Name, For, Size, Sum string }

func (s *site) page(w http.ResponseWriter, r *http.Request) error {
	address, err := s.Address(r)
	if err != nil {
		return err
	}
	p, err := s.program()
	if err != nil {
		return err
	}
	var html bytes.Buffer
	err = page.Execute(&html, struct {
		Address, Version string
		Style            template.CSS
		Files            []download
	}{address, s.Version, template.CSS(style), []download{
		{s.archive.Name, "Python 3.9 or later, for pip", unit.Bytes(len(s.archive.Content)).String(), sum(s.archive.Content)},
		{s.wheel.Name, "Python 3.9 or later", unit.Bytes(len(s.wheel.Content)).String(), sum(s.wheel.Content)},
		{"molrun", runtime.GOOS + ", " + runtime.GOARCH, unit.Bytes(p.size).String(), p.sum},
	}})
	if err != nil {
		return err
	}
	serve(w, r, "text/html; charset=utf-8", python.File{Content: html.Bytes()})
	return nil
}
