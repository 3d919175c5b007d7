package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// block is a code block of a page, with the marker in the HTML comment before it.
type block struct{ mark, language, text string }

type docPage struct {
	file   string // relative to root
	blocks []block
	prose  string // text outside code blocks
}

// documentation parses README.md and the pages of web/docs.
func documentation(t *testing.T) (pages []docPage) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "web/docs/*.md"))
	must.OK(t, err)
	if len(files) < 5 {
		t.Fatalf("web/docs has only %q", files)
	}
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		name, err := filepath.Rel(root, file)
		must.OK(t, err)
		pages = append(pages, parsePage(name, must.Read(t, file)))
	}
	return pages
}

func parsePage(name, text string) docPage {
	p := docPage{file: name}
	mark, in := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		fence, opens := strings.CutPrefix(line, "```")
		switch {
		case opens && in:
			in = false
		case opens:
			p.blocks, in = append(p.blocks, block{mark: mark, language: fence}), true
		case in:
			p.blocks[len(p.blocks)-1].text += line + "\n"
			continue
		default:
			p.prose += line + "\n"
		}
		mark = ""
		if comment, ok := strings.CutPrefix(line, "<!-- "); ok && !in {
			mark = strings.TrimSuffix(comment, " -->")
		}
	}
	return p
}

// TestCommandsOfTheDocumentationAreRunOrSayWhatTheyNeed fails if a block of commands is
// not run by a test of this package, unless its marker says what the commands need.
func TestCommandsOfTheDocumentationAreRunOrSayWhatTheyNeed(t *testing.T) {
	t.Parallel()
	tests, err := filepath.Glob("*_test.go")
	must.OK(t, err)
	var sources strings.Builder
	for _, file := range tests {
		sources.WriteString(must.Read(t, file))
	}
	whole := map[string]bool{"make demo\n": true, "make test\n": true} // make test runs .ci/test, which runs make demo
	for _, page := range documentation(t) {
		for _, b := range page.blocks {
			run, runs := strings.CutPrefix(b.mark, "run: ")
			needs, marked := strings.CutPrefix(b.mark, "needs: ")
			switch {
			case b.language != "sh" && b.language != "console" && b.language != "" && b.language != "bash":
			case whole[b.text] && b.mark == "":
			case runs && regexp.MustCompile(`\b(readme\(t, |recording\(t, |shell\()"run: `+run+`"`).MatchString(sources.String()):
			case marked && needs != "":
			default:
				t.Errorf("%s: no test runs this, and no <!-- needs: … --> above says what it needs:\n%s", page.file, b.text)
			}
		}
	}
}

// TestCommandsInSentencesExist checks that each `molrun …` in the documentation is a
// command, with flags that exist.
func TestCommandsInSentencesExist(t *testing.T) {
	t.Parallel()
	n := 0
	for _, page := range documentation(t) {
		text := page.prose
		for _, code := range regexp.MustCompile("`[^`]+`").FindAllString(text, -1) {
			words := strings.Fields(strings.NewReplacer("`", "", "[", "", "]", "", "(", "", ")", "", "\\|", " ").Replace(code))
			if len(words) < 2 || strings.TrimPrefix(words[0], "./") != "molrun" || !regexp.MustCompile("^[a-z]").MatchString(words[1]) {
				continue
			}
			if i := strings.IndexAny(words[1], "|"); i > 0 {
				words[1] = words[1][:i]
			}
			n++
			wantCommand(t, page.file, words[1:])
		}
	}
	if n < 20 {
		t.Errorf("only %d commands were found", n)
	}
}

func wantCommand(t *testing.T, file string, words []string) {
	t.Helper()
	help := exec.Command(molrun, append(plainWords(words), "--help")...)
	out, err := help.CombinedOutput()
	if err != nil {
		t.Errorf("%s: molrun %s: %v\n%s", file, strings.Join(words, " "), err, out)
		return
	}
	for _, word := range words {
		flag, _, _ := strings.Cut(word, "=")
		if strings.HasPrefix(flag, "--") && !regexp.MustCompile(`(?m)^\s+(-\w, )?`+flag+`\b`).Match(out) {
			t.Errorf("%s: molrun %s has no flag %s", file, words[0], flag)
		}
	}
}

// plainWords returns the leading words of a line that look like command names.
func plainWords(words []string) (names []string) {
	for _, w := range words {
		if !regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(w) {
			return names
		}
		names = append(names, w)
	}
	return names
}

func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	if n := strings.Count(must.Read(t, filepath.Join(root, "README.md")), "\n"); n > 150 {
		t.Errorf("README.md has %d lines, want at most 150", n)
	}
}

// TestLinksOfMarkdownExist checks every relative link in every Markdown file in git.
func TestLinksOfMarkdownExist(t *testing.T) {
	t.Parallel()
	n := 0
	must.OK(t, filepath.WalkDir(root, func(file string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "node_modules" || e.Name() == "dist" || strings.HasPrefix(e.Name(), ".") && file != root):
			return filepath.SkipDir
		case filepath.Ext(file) == ".md":
			n += checkLinks(t, file)
		}
		return nil
	}))
	if n < 60 {
		t.Errorf("only %d links were found", n)
	}
}

// checkLinks checks the relative links in a file and returns their number.
func checkLinks(t *testing.T, file string) int {
	t.Helper()
	text := parsePage(file, must.Read(t, file)).prose
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1)
	for _, link := range links {
		to, heading, _ := strings.Cut(link[1], "#")
		if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
			continue
		}
		target := filepath.Join(filepath.Dir(file), to)
		if to == "" {
			target = file
		}
		info, err := os.Stat(target)
		if err != nil {
			t.Errorf("%s links to %s: %v", file, link[1], err)
			continue
		}
		if heading != "" && (info.IsDir() || !hasHeading(parsePage(target, must.Read(t, target)).prose, heading)) {
			t.Errorf("%s links to %s, which has no such heading", file, link[1])
		}
	}
	return len(links)
}

// hasHeading reports whether a page has a heading with the given anchor.
func hasHeading(text, name string) bool {
	other := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line {
			title = other.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			if strings.ReplaceAll(title, " ", "-") == name {
				return true
			}
		}
	}
	return false
}

// TestMessagesOfTroubleshootingExist searches the source for each message in the tables,
// in which … matches any text. Each message must be on one line of one file.
func TestMessagesOfTroubleshootingExist(t *testing.T) {
	t.Parallel()
	_, part, _ := strings.Cut(must.Read(t, filepath.Join(root, "web/docs/server.md")), "\n## Troubleshooting\n")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(part, -1)
	if tables := strings.Count(part, "\n| "); len(rows) < 30 || tables != len(rows)+strings.Count(part, "\n| message | cause | remedy |") {
		t.Fatalf("%d messages were read of %d rows", len(rows), tables)
	}
	source := sourceText(t)
	for _, row := range rows {
		parts := strings.Split(row[1], "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		if !regexp.MustCompile(strings.Join(parts, "[^\\n]*")).MatchString(source) {
			t.Errorf("no message of the source is %s", row[1])
		}
	}
}

// sourceText returns all Go code except tests.
func sourceText(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"app", "blobs", "storage", "web"} {
		must.OK(t, filepath.WalkDir(filepath.Join(root, dir), func(file string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() && e.Name() == "node_modules" {
				return filepath.SkipDir
			}
			if err == nil && filepath.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") {
				all.WriteString(must.Read(t, file))
			}
			return err
		}))
	}
	return all.String()
}
