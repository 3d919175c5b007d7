package static

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"molrun/web/respond"
)

// docSource describes a documentation page: its name, which is used in the URL and for
// its file, its menu title, and its subject.
type docSource struct{ name, menu, about string }

// reader is a group of readers and their pages. They start with the first page.
type reader struct {
	title string
	pages []docSource
}

// readers lists the pages in menu order.
var readers = []reader{
	{"Scientists", []docSource{
		{"tutorials", "Tutorials", "start here: from a sequence to a figure; docking; condensates"},
		{"clients", "Clients", "the browser, the command line, Python, AI assistants"},
		{"cg-idp", "cg-idp", "simulation of disordered proteins: model, results, limits"},
		{"cg-condensate", "cg-condensate", "simulation of condensates: protocols, results, limits"},
		{"cg-binodal", "cg-binodal", "phase diagrams: points, critical temperature, limits"},
		{"types", "Catalogue", "which release each type was written for, and how it is tested"},
	}},
	{"Programmers", []docSource{
		{"api", "API", "start here: upload, submit, follow and download with curl"},
		{"python", "Python", "the package molrun"},
		{"workflows", "Workflows", "Snakemake and Nextflow"},
		{"rules", "Rules of the API", "what the API guarantees, and which tests check it"},
		{"msa", "Alignment server", "for ColabFold, Boltz, Chai-1 and Protenix"},
		{"compat", "Hosted service", "for clients of a hosted protein service"},
	}},
	{"Administrators", []docSource{
		{"server", "Server", "start here: installation, configuration, users, Slurm, backup, troubleshooting"},
		{"proxy", "Reverse proxies", "nginx, Apache and Caddy"},
		{"monitoring", "Monitoring", "metrics, alerts and a dashboard"},
		{"security", "Security", "threat model and limits"},
		{"faults", "Fault tolerance", "fault-injection tests and their results"},
	}},
	{"Authors of algorithm files", []docSource{
		{"algorithms", "Algorithms", "start here: wrap a program in 25 lines"},
		{"format", "Algorithm files", "reference of all keys"},
	}},
}

// documentation is rendered from the sources on first use.
type documentation struct {
	pages    map[string]file
	sections []section
}

var allDocs = sync.OnceValues(renderDocs)

// picturePolicy allows pictures inline styles, and nothing else.
const picturePolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// answerDocs responds with a page, a picture or search results.
func answerDocs(w http.ResponseWriter, r *http.Request) error {
	all, err := allDocs()
	if err != nil {
		return fmt.Errorf("render the documentation: %w", err)
	}
	name := strings.TrimPrefix(r.URL.Path, docsPrefix)
	if query := r.URL.Query().Get("q"); name == "" && query != "" {
		return all.answerSearch(w, r, query[:min(len(query), maxQuery)])
	}
	if strings.HasPrefix(name, pictures) {
		w.Header().Set("Content-Security-Policy", picturePolicy)
	}
	found, ok := all.pages[name]
	if !ok {
		return noPage(w, name)
	}
	found.serve(w, r)
	return nil
}

// noPage responds that there is no such page, with a link to the documentation that works
// at any depth.
func noPage(w http.ResponseWriter, name string) error {
	up := cmp.Or(strings.Repeat("../", strings.Count(name, "/")), "./")
	page, err := pageOf("No such page", template.HTML(`<h1>There is no such page</h1>
<p>The <a href="`+up+`">documentation</a> lists the available pages.</p>
`))
	if err == nil {
		respond.Body(w, http.StatusNotFound, page.contentType, page.content)
	}
	return err
}
