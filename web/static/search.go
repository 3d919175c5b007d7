package static

import (
	"bytes"
	"cmp"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"

	"molrun/web/respond"
)

const (
	maxQuery   = 200 // bytes
	maxResults = 30
	excerpt    = 240 // bytes
)

// section is a heading of a page and the text below it.
type section struct {
	Address, Page, Title string
	text                 string
	lowTitle, lowText    string // lowercase, for searching
}

// sectionsOf splits a page with the given title and address at its headings.
func sectionsOf(address, title string, document ast.Node, content []byte) (sections []section) {
	var text strings.Builder
	open := section{Address: address, Page: title, Title: title}
	end := func() {
		open.text = strings.Join(strings.Fields(text.String()), " ")
		open.lowTitle, open.lowText = lower(open.Page+" "+open.Title), lower(open.text)
		sections = append(sections, open)
		text.Reset()
	}
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			if entering && n.Level <= 3 {
				end()
				id, _ := n.AttributeString("id")
				name, _ := id.([]byte)
				open = section{Address: address + "#" + string(name), Page: title, Title: plainText(n, content)}
				return ast.WalkSkipChildren, nil
			}
		case *ast.Text:
			if entering {
				text.Write(n.Segment.Value(content))
				if n.SoftLineBreak() {
					text.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				text.Write(n.Lines().Value(content))
			}
		}
		if !entering && n.Type() == ast.TypeBlock {
			text.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	end()
	return sections
}

// result is a matching section, with the text around the first match.
type result struct {
	section
	Before, Match, After string
	score                int
}

// search returns the sections that contain all words of a query, best first.
func search(sections []section, query string) (results []result) {
	words := strings.Fields(lower(query))
	if len(words) == 0 {
		return nil
	}
	for _, s := range sections {
		if r, ok := s.find(words); ok {
			results = append(results, r)
		}
	}
	slices.SortStableFunc(results, func(a, b result) int { return cmp.Compare(b.score, a.score) })
	return results[:min(len(results), maxResults)]
}

// find searches a section for all words. A match in the title counts as much as ten in
// the text.
func (s section) find(words []string) (r result, found bool) {
	r.section = s
	at := -1
	for _, word := range words {
		inTitle, inText := strings.Count(s.lowTitle, word), strings.Count(s.lowText, word)
		if inTitle+inText == 0 {
			return r, false
		}
		r.score += 10*inTitle + min(inText, 10)
		if i := strings.Index(s.lowText, word); i >= 0 && (at < 0 || i < at) {
			at, r.Match = i, s.text[i:i+len(word)]
		}
	}
	at = max(at, 0)
	behind := at + len(r.Match)
	r.Before = strings.ToValidUTF8(s.text[max(0, at-excerpt/3):at], "")
	r.After = strings.ToValidUTF8(s.text[behind:min(len(s.text), behind+excerpt)], "")
	return r, true
}

// lower is strings.ToLower for ASCII only, so that offsets stay valid for the original
// text.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

var resultsPage = template.Must(template.New("results").Parse(`{{range .}}<h2><a href="{{.Address}}">{{.Title}}</a></h2>
<p>{{if ne .Page .Title}}{{.Page}}: {{end}}{{if .Before}}… {{end}}{{.Before}}<mark>{{.Match}}</mark>{{.After}} …</p>
{{else}}<p>No section has all of these words. Try fewer words, or a part of one.</p>
{{end}}`))

// answerSearch responds with the sections that match a query.
func (d documentation) answerSearch(w http.ResponseWriter, r *http.Request, query string) error {
	var body bytes.Buffer
	if err := resultsPage.Execute(&body, search(d.sections, query)); err != nil {
		return err
	}
	page, err := framed("", query, "Search results", "<h1>Search results</h1>\n", body.String(), nil)
	if err == nil {
		respond.Whole(w, r, page.contentType, page.content)
	}
	return err
}
