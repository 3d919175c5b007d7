package static

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/client/python"
)

//go:embed clients.html
var clientsLayout string

var clientsBody = template.Must(template.New("page").Parse(clientsLayout))

// holder is the common holder of all downloads of this program, so that their transfer
// limit leaves capacity for users' downloads.
const holder = "client"

// clients serves the Python package and this program, with a page that lists them.
type clients struct {
	Options
	wheel, archive python.File
	program        func() (program, error)
}

func newClients(o Options) *clients {
	return &clients{o, python.Wheel(o.Version), python.Archive(o.Version), sync.OnceValues(openProgram)}
}

func (c *clients) answer(w http.ResponseWriter, r *http.Request) error {
	switch name := strings.TrimPrefix(r.URL.Path, clientPrefix); name {
	case "":
		return c.page(w, r)
	case "molrun":
		return c.sendProgram(w, r)
	case "checksums.txt":
		return c.checksums(w, r)
	case "molrun.whl":
		redirect(w, c.wheel.Name)
		return nil
	case c.wheel.Name:
		newFile("application/zip", c.wheel.Content).serve(w, r)
		return nil
	case c.archive.Name:
		newFile("application/zip", c.archive.Content).serve(w, r)
		return nil
	}
	return fault.Errorf(fault.NotFound, "There is no such file; %s lists the available files.", clientPrefix)
}

// download is a row of the page.
type download struct{ Name, For, Size, Sum string }

func (c *clients) page(w http.ResponseWriter, r *http.Request) error {
	address, err := c.Address(r)
	if err != nil {
		return err
	}
	p, err := c.program()
	if err != nil {
		return err
	}
	var inner bytes.Buffer
	err = clientsBody.Execute(&inner, struct {
		Address, Version string
		Files            []download
	}{address, c.Version, []download{
		{c.archive.Name, "Python 3.9 or later, for pip", unit.Bytes(len(c.archive.Content)).String(), sum(c.archive.Content)},
		{c.wheel.Name, "Python 3.9 or later", unit.Bytes(len(c.wheel.Content)).String(), sum(c.wheel.Content)},
		{"molrun", runtime.GOOS + ", " + runtime.GOARCH, unit.Bytes(p.size).String(), p.sum},
	}})
	if err != nil {
		return err
	}
	page, err := pageOf("Clients", template.HTML(inner.String()))
	if err != nil {
		return err
	}
	page.serve(w, r)
	return nil
}

// sendProgram responds with this program.
func (c *clients) sendProgram(w http.ResponseWriter, r *http.Request) error {
	p, err := c.program()
	if err != nil {
		return err
	}
	f, err := os.Open(running)
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Cache-Control", "no-cache")
	return c.Sender.SendDownload(w, r, app.Download{Content: f, Filename: "molrun", ETag: `"` + p.sum + `"`, Holder: holder})
}
