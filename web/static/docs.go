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

// docSource is a page: its name in addresses and of its file, and how menus call it.
type docSource struct{ name, menu, about string }

// docSources lists the pages in the order of the menu.
var docSources = []docSource{
	{"clients", "Clients", "the browser, the command line, Python, language models, workflows"},
	{"python", "Python", "the package molrun"},
	{"workflows", "Workflows", "Snakemake and Nextflow"},
	{"api", "API", "a tour with curl: files, jobs, batches, events, webhooks"},
	{"rules", "Rules of the API", "what the API guarantees, and the tests of each rule"},
	{"msa", "Alignment server", "for ColabFold, Boltz, Chai-1 and Protenix"},
	{"compat", "Hosted service", "for clients of a hosted service"},
	{"algorithms", "Algorithms", "using and writing them"},
	{"types", "Types of the catalogue", "what each was read from and how it is tested"},
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

// docPages are made at their first use.
var docPages = sync.OnceValues(renderDocs)

// answerDocs answers with a page.
func answerDocs(w http.ResponseWriter, r *http.Request) error {
	all, err := docPages()
	if err != nil {
		return fmt.Errorf("make the documentation: %w", err)
	}
	name := strings.TrimPrefix(r.URL.Path, docsPrefix)
	found, ok := all[name]
	if !ok {
		return noPage(w, name)
	}
	found.serve(w, r)
	return nil
}

// noPage answers that there is no such page, with a link that leads back from any depth.
func noPage(w http.ResponseWriter, name string) error {
	up := cmp.Or(strings.Repeat("../", strings.Count(name, "/")), "./")
	page, err := pageOf("No such page", template.HTML(`<h1>There is no such page</h1>
<p>The <a href="`+up+`">documentation</a> lists those that there are.</p>
`))
	if err == nil {
		respond.Body(w, http.StatusNotFound, page.contentType, page.content)
	}
	return err
}
