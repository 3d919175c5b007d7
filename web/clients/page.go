package clients

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"runtime"

	"molrun/app/base/unit"
	"molrun/app/client/python"
	"molrun/web/page"
)

//go:embed page.html
var layout string

var body = template.Must(template.New("page").Parse(layout))

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
	var inner bytes.Buffer
	err = body.Execute(&inner, struct {
		Address, Version string
		Files            []download
	}{address, s.Version, []download{
		{s.archive.Name, "Python 3.9 or later, for pip", unit.Bytes(len(s.archive.Content)).String(), sum(s.archive.Content)},
		{s.wheel.Name, "Python 3.9 or later", unit.Bytes(len(s.wheel.Content)).String(), sum(s.wheel.Content)},
		{"molrun", runtime.GOOS + ", " + runtime.GOARCH, unit.Bytes(p.size).String(), p.sum},
	}})
	if err != nil {
		return err
	}
	html, err := page.HTML("Clients", template.HTML(inner.String()))
	if err != nil {
		return err
	}
	serve(w, r, "text/html; charset=utf-8", python.File{Content: html})
	return nil
}
