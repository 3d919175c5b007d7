package static

import (
	"bytes"
	"html/template"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"molrun/web/docs"
)

// heading is an entry of a table of contents.
type heading struct {
	ID, Title string
	Deeper    bool
}

var docsFrame = template.Must(template.New("docs").Parse(`<div class="wide">
<nav class="pages" aria-label="Pages">
<ul>
<li><a href="../ui/">molrun</a></li>
<li><a href="./"{{if eq .Name "."}} aria-current="page"{{end}}>Documentation</a></li>
</ul>
{{if ne .Name "."}}{{range .Readers}}<h2>{{.Title}}</h2>
<ul>
{{range .Pages}}<li><a href="{{.Name}}"{{if eq .Name $.Name}} aria-current="page"{{end}}>{{.Menu}}</a></li>
{{end}}</ul>
{{end}}{{end}}</nav>
<form action="./" role="search"><input type="search" name="q" value="{{.Query}}" maxlength="200" required aria-label="Words to search for"> <button>Search</button></form>
<main>
{{.Title}}{{if .Contents}}<nav class="contents" aria-label="Contents"><ul>
{{range .Contents}}<li{{if .Deeper}} class="deeper"{{end}}><a href="#{{.ID}}">{{.Title}}</a></li>
{{end}}</ul></nav>
{{end}}{{.Body}}</main>
</div>
`))

// menuGroup and menuEntry are the parts of the menu.
type menuGroup struct {
	Title string
	Pages []menuEntry
}

type menuEntry struct{ Name, Menu, About string }

func docsMenu() (groups []menuGroup) {
	for _, r := range readers {
		group := menuGroup{Title: r.title}
		for _, s := range r.pages {
			group.Pages = append(group.Pages, menuEntry{s.name, s.menu, s.about})
		}
		groups = append(groups, group)
	}
	return groups
}

var docsTable = template.Must(template.New("table").Parse(`{{range .}}<h2>{{.Title}}</h2>
<table>
<tr><th scope="col">Page</th><th scope="col">About</th></tr>
{{range .Pages}}<tr><td><a href="{{.Name}}">{{.Menu}}</a></td><td>{{.About}}</td></tr>
{{end}}</table>
{{end}}<p>The contract of the API is <a href="../openapi.yaml">openapi.yaml</a>; programs to download are at <a href="../client/">client</a>.</p>
`))

// pictures is the folder of the pages' pictures.
const pictures = "pictures/"

// renderDocs renders all pages.
func renderDocs() (d documentation, err error) {
	d.pages = map[string]file{}
	var list bytes.Buffer
	if err := docsTable.Execute(&list, docsMenu()); err != nil {
		return d, err
	}
	d.pages[""], err = framed(".", "", "Documentation", "<h1>Documentation</h1>\n", list.String(), nil)
	if err != nil {
		return d, err
	}
	for _, r := range readers {
		for _, s := range r.pages {
			content, err := docs.Pages.ReadFile(s.name + ".md")
			if err == nil {
				err = d.add(s, content)
			}
			if err != nil {
				return d, err
			}
		}
	}
	files, err := fs.Glob(docs.Pages, pictures+"*")
	for _, name := range files {
		content, err := docs.Pages.ReadFile(name)
		if err != nil {
			return d, err
		}
		d.pages[name] = newFile(typeOf(name), content)
	}
	return d, err
}

// framed assembles a page from its parts.
func framed(name, query, title, head, body string, contents []heading) (file, error) {
	var inner bytes.Buffer
	err := docsFrame.Execute(&inner, map[string]any{
		"Name": name, "Query": query, "Readers": docsMenu(), "Title": template.HTML(head), "Body": template.HTML(body), "Contents": contents,
	})
	if err != nil {
		return file{}, err
	}
	return pageOf(title, template.HTML(inner.String()))
}

// markdown renders Markdown to HTML. It omits raw HTML in the source.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

var (
	needs   = regexp.MustCompile(`(?m)^<!-- needs: (.*) -->$`)
	comment = regexp.MustCompile(`(?m)^<!-- .* -->\n`)
	// Elements that scroll on small screens.
	scrollable = strings.NewReplacer("<table>", `<div class="table" tabindex="0"><table>`, "</table>", "</table></div>", "<pre>", `<pre class="block" tabindex="0">`)
)

// add renders a page from its Markdown.
func (d *documentation) add(s docSource, content []byte) error {
	content = comment.ReplaceAll(needs.ReplaceAll(content, []byte("*Needs $1.*\n")), nil)
	document := markdown.Parser().Parse(text.NewReader(content))
	title, contents := s.menu, []heading(nil)
	var nodes []ast.Node
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			nodes = append(nodes, n)
		}
		return ast.WalkContinue, nil
	})
	var first ast.Node
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			name, _ := id.([]byte)
			switch {
			case n.Level == 1:
				title, first = plainText(n, content), n
			case n.Level <= 3:
				contents = append(contents, heading{string(name), plainText(n, content), n.Level == 3})
			}
		case *ast.Link:
			relink(n)
		case *ast.Image:
			if !strings.HasPrefix(string(n.Destination), pictures) {
				n.Parent().RemoveChild(n.Parent(), n) // its target is not embedded in the program
			}
		}
	}
	if first != nil {
		first.Parent().RemoveChild(first.Parent(), first)
	}
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, content, document); err != nil {
		return err
	}
	page, err := framed(s.name, "", title, "<h1>"+template.HTMLEscapeString(title)+"</h1>\n", scrollable.Replace(body.String()), contents)
	d.pages[s.name] = page
	d.sections = append(d.sections, sectionsOf(s.name, title, document, content)...)
	return err
}

// relink converts a link in the repository to a link between pages, or to plain text if
// its target is not served.
func relink(n *ast.Link) {
	to, anchor, anchored := strings.Cut(string(n.Destination), "#")
	switch {
	case strings.Contains(to, "://"), to == "":
		return
	case to == "../openapi.yaml":
		n.Destination = []byte(to)
		return
	}
	name, isPage := strings.CutSuffix(to, ".md")
	if isPage && slices.ContainsFunc(readers, func(r reader) bool {
		return slices.ContainsFunc(r.pages, func(s docSource) bool { return s.name == name })
	}) {
		if anchored {
			name += "#" + anchor
		}
		n.Destination = []byte(name)
		return
	}
	parent := n.Parent()
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		n.RemoveChild(n, child)
		parent.InsertBefore(parent, n, child)
	}
	parent.RemoveChild(parent, n)
}

// plainText returns the text of a node.
func plainText(n ast.Node, content []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(content))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
