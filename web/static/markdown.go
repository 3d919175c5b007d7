package static

import (
	"bytes"
	"html/template"
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

// heading is a line of a table of contents.
type heading struct {
	ID, Title string
	Deeper    bool
}

var docsFrame = template.Must(template.New("docs").Parse(`<div class="wide">
<nav class="pages" aria-label="Pages"><ul>
<li><a href="../ui/">molrun</a></li>
<li><a href="./"{{if eq .Name ""}} aria-current="page"{{end}}>Documentation</a></li>
{{range .Menu}}<li><a href="{{.Name}}"{{if eq .Name $.Name}} aria-current="page"{{end}}>{{.Menu}}</a></li>
{{end}}</ul></nav>
<main>
{{.Title}}{{if .Contents}}<nav class="contents" aria-label="Contents"><ul>
{{range .Contents}}<li{{if .Deeper}} class="deeper"{{end}}><a href="#{{.ID}}">{{.Title}}</a></li>
{{end}}</ul></nav>
{{end}}{{.Body}}</main>
</div>
`))

// menuEntry is a line of the menu.
type menuEntry struct{ Name, Menu, About string }

func docsMenu() (entries []menuEntry) {
	for _, s := range docSources {
		entries = append(entries, menuEntry{s.name, s.menu, s.about})
	}
	return entries
}

var docsTable = template.Must(template.New("table").Parse(`<table>
<tr><th scope="col">Page</th><th scope="col">About</th></tr>
{{range .}}<tr><td><a href="{{.Name}}">{{.Menu}}</a></td><td>{{.About}}</td></tr>
{{end}}</table>
<p>The contract of the API is <a href="../openapi.yaml">openapi.yaml</a>; programs to download are at <a href="../client/">client</a>.</p>
`))

// renderDocs makes all pages.
func renderDocs() (map[string]file, error) {
	all := map[string]file{}
	var list bytes.Buffer
	if err := docsTable.Execute(&list, docsMenu()); err != nil {
		return nil, err
	}
	err := addPage(all, "", "Documentation", "<h1>Documentation</h1>\n", list.String(), nil)
	for _, s := range docSources {
		var content []byte
		if err == nil {
			content, err = docs.Pages.ReadFile(s.name + ".md")
		}
		if err == nil {
			err = s.render(all, content)
		}
	}
	return all, err
}

// addPage completes a page from its parts.
func addPage(all map[string]file, name, title, head, body string, contents []heading) error {
	var inner bytes.Buffer
	err := docsFrame.Execute(&inner, map[string]any{
		"Name": name, "Menu": docsMenu(), "Title": template.HTML(head), "Body": template.HTML(body), "Contents": contents,
	})
	if err != nil {
		return err
	}
	page, err := pageOf(title, template.HTML(inner.String()))
	all[name] = page
	return err
}

// Markdown's own HTML is left out of the output.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

var (
	needs   = regexp.MustCompile(`(?m)^<!-- needs: (.*) -->$`)
	comment = regexp.MustCompile(`(?m)^<!-- .* -->\n`)
	// What a small screen scrolls.
	scrollable = strings.NewReplacer("<table>", `<div class="table" tabindex="0"><table>`, "</table>", "</table></div>", "<pre>", `<pre class="block" tabindex="0">`)
)

func (s docSource) render(all map[string]file, content []byte) error {
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
			n.Parent().RemoveChild(n.Parent(), n) // no picture is part of the program
		}
	}
	if first != nil {
		first.Parent().RemoveChild(first.Parent(), first)
	}
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, content, document); err != nil {
		return err
	}
	return addPage(all, s.name, title, "<h1>"+template.HTMLEscapeString(title)+"</h1>\n", scrollable.Replace(body.String()), contents)
}

// relink makes a link of the repository one between pages, or plain text if its target is not
// served.
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
	if isPage && slices.ContainsFunc(docSources, func(s docSource) bool { return s.name == name }) {
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

// plainText is the text of a node.
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
