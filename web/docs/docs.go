// Package docs serves the documentation, which is part of the program, so that a site without
// the Internet has it. It needs no API key. The pages are the Markdown files of this folder.
package docs

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"molrun/app/base/fault"
	"molrun/web/page"
	"molrun/web/respond"
)

// Prefix begins the paths of the pages.
const Prefix = "/docs/"

//go:embed *.md
var files embed.FS

// source is a page: its name in addresses and of its file, and how menus call it.
type source struct{ name, menu, about string }

// sources lists the pages in the order of the menu.
var sources = []source{
	{"clients", "Clients", "the browser, the command line, Python, language models, workflows"},
	{"python", "Python", "the package molrun"},
	{"workflows", "Workflows", "Snakemake and Nextflow"},
	{"api", "API", "a tour with curl: files, jobs, batches, events, webhooks"},
	{"rules", "Rules of the API", "what the API guarantees, and the tests of each rule"},
	{"compat", "Hosted service", "for clients of a hosted service"},
	{"algorithms", "Algorithms", "using and writing them"},
	{"format", "Algorithm files", "each key of their format"},
	{"cg-idp", "cg-idp", "the built-in engine: its science and its limits"},
	{"cg-condensate", "cg-condensate", "the built-in engine for condensates: protocols, results, limits"},
	{"cg-binodal", "cg-binodal", "phase diagrams of condensates: points, critical temperature, limits"},
	{"server", "Server", "from the installation to troubleshooting, for administrators"},
	{"proxy", "Behind a proxy", "nginx, Apache and Caddy, and how to check them"},
	{"monitoring", "Monitoring", "metrics, alerts, a dashboard"},
	{"security", "Security", "what is protected and what is not"},
	{"faults", "Faults", "fault-injection tests and their results"},
}

// pages are made at their first use.
var pages = sync.OnceValues(render)

// Before returns a handler that serves the pages and leaves all else to next.
func Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, Prefix):
			page.Serve(w, r, answer)
		case r.URL.Path+"/" == Prefix && page.Reads(r):
			page.Redirect(w, "docs/")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func answer(w http.ResponseWriter, r *http.Request) error {
	if !page.Reads(r) {
		w.Header().Set("Allow", "GET, HEAD")
		return fault.Errorf(fault.MethodNotAllowed, "%s is not allowed here; use GET, HEAD.", respond.Clip(r.Method))
	}
	all, err := pages()
	if err != nil {
		return fmt.Errorf("make the documentation: %w", err)
	}
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	found, ok := all[name]
	if !ok {
		return notFound(w, name)
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", found.etag)
	respond.Whole(w, r, contentType, found.html)
	return nil
}

// notFound answers that there is no such page, with a link that leads back from any depth.
func notFound(w http.ResponseWriter, name string) error {
	up := cmp.Or(strings.Repeat("../", strings.Count(name, "/")), "./")
	html, err := page.HTML("No such page", template.HTML(`<h1>There is no such page</h1>
<p>The <a href="`+up+`">documentation</a> lists those that there are.</p>
`))
	if err == nil {
		respond.Body(w, http.StatusNotFound, contentType, html)
	}
	return err
}
