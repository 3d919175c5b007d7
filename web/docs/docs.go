// Package docs serves the documentation, which is part of the program, so that a site without
// the Internet has it. It needs no API key. The pages are Markdown beside this file and beside
// the code that they describe.
package docs

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"molrun/app/algorithm/builtin"
	"molrun/app/base/fault"
	"molrun/app/client/python"
	"molrun/app/engine/binodal"
	"molrun/app/engine/cgidp"
	"molrun/app/engine/condensate"
	"molrun/web/compat"
	"molrun/web/page"
	"molrun/web/redact"
	"molrun/web/respond"
)

// Prefix begins the paths of the pages.
const Prefix = "/docs/"

//go:embed *.md
var files embed.FS

// source is the Markdown of a page.
type source struct {
	name, file  string // of the page in addresses, and of the file in the repository
	menu, about string
	text        func() string
}

func ours(name, menu, about string) source {
	return source{name, "web/docs/" + name + ".md", menu, about, func() string {
		text, err := files.ReadFile(name + ".md")
		if err != nil {
			panic(err) // a mistake in the program itself
		}
		return string(text)
	}}
}

// sources lists the pages in the order of the menu.
var sources = []source{
	ours("clients", "Clients", "the browser, the command line, Python, language models, workflows"),
	ours("api", "API", "a tour with curl: files, jobs, batches, events, webhooks"),
	ours("algorithms", "Algorithms", "using and writing them"),
	{"format", "app/algorithm/builtin/README.md", "Algorithm files", "each key of their format", func() string { return builtin.Format }},
	{"cg-idp", "app/engine/cgidp/README.md", "cg-idp", "the built-in engine: its science and its limits", func() string { return cgidp.Guide }},
	{"cg-condensate", "app/engine/condensate/README.md", "cg-condensate", "the built-in engine for condensates: protocols, results, limits", func() string { return condensate.Guide }},
	{"cg-binodal", "app/engine/binodal/README.md", "cg-binodal", "phase diagrams of condensates: points, critical temperature, limits", func() string { return binodal.Guide }},
	{"python", "app/client/python/README.md", "Python", "the package molrun", python.Guide},
	{"compat", "web/compat/README.md", "Hosted service", "for clients of a hosted service", func() string { return compat.Guide }},
	ours("server", "Server", "from the installation to troubleshooting, for administrators"),
	ours("monitoring", "Monitoring", "metrics, alerts, a dashboard"),
	ours("security", "Security", "what is protected and what is not"),
	ours("faults", "Faults", "what was tried to break it"),
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
		return fault.Errorf(fault.MethodNotAllowed, "%s is not allowed here; use GET, HEAD.", redact.Clip(r.Method))
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
