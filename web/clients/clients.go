// Package clients serves the programs that use the service, so that nobody needs another
// source of them: the Python package and this program itself. It needs no API key.
package clients

import (
	"net/http"
	"os"
	"strings"
	"sync"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/client/python"
	"molrun/web/page"
	"molrun/web/respond"
)

// Prefix begins the paths of the page and its files.
const Prefix = "/client/"

// holder shares one bound on transfers among all who download this program, so that
// they leave room for those of users.
const holder = "client"

// Options configure the page.
type Options struct {
	Version string
	// Address returns where clients find the service, as links say it.
	Address func(*http.Request) (string, error)
	Sender  Sender
}

// Sender answers with an open file.
type Sender interface {
	Send(w http.ResponseWriter, r *http.Request, f app.Download) error
}

// Before returns a handler that serves the page and its files and leaves all else to next.
func Before(next http.Handler, o Options) http.Handler {
	s := &site{Options: o, wheel: python.Wheel(o.Version), archive: python.Archive(o.Version), program: sync.OnceValues(openProgram)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, Prefix):
			s.ServeHTTP(w, r)
		case r.URL.Path+"/" == Prefix && page.Reads(r):
			page.Redirect(w, "client/")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// site is the page and its files.
type site struct {
	Options
	wheel, archive python.File
	program        func() (program, error)
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page.Serve(w, r, s.answer)
}

func (s *site) answer(w http.ResponseWriter, r *http.Request) error {
	if !page.Reads(r) {
		w.Header().Set("Allow", "GET, HEAD")
		return fault.Errorf(fault.MethodNotAllowed, "%s is not allowed here; use GET, HEAD.", respond.Clip(r.Method))
	}
	switch name := strings.TrimPrefix(r.URL.Path, Prefix); name {
	case "":
		return s.page(w, r)
	case "molrun":
		return s.sendProgram(w, r)
	case "checksums.txt":
		return s.checksums(w, r)
	case "molrun.whl":
		page.Redirect(w, s.wheel.Name)
		return nil
	case s.wheel.Name:
		serve(w, r, "application/zip", s.wheel)
		return nil
	case s.archive.Name:
		serve(w, r, "application/zip", s.archive)
		return nil
	}
	return fault.Errorf(fault.NotFound, "There is no such file here; %s lists those that there are.", Prefix)
}

// serve answers with a file that changes with the program alone.
func serve(w http.ResponseWriter, r *http.Request, contentType string, f python.File) {
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", `"`+sum(f.Content)+`"`)
	respond.Whole(w, r, contentType, f.Content)
}

// sendProgram answers with this program.
func (s *site) sendProgram(w http.ResponseWriter, r *http.Request) error {
	p, err := s.program()
	if err != nil {
		return err
	}
	f, err := os.Open(running)
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Cache-Control", "no-cache")
	return s.Sender.Send(w, r, app.Download{Content: f, Filename: "molrun", ETag: `"` + p.sum + `"`, Holder: holder})
}
