package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestReadmeRecordingIsWhatTheCommandsShow runs the commands of the recording in
// web/docs/clients.md.
func TestReadmeRecordingIsWhatTheCommandsShow(t *testing.T) {
	t.Parallel()
	replay(t, recording(t, "run: command line"), nil)
}

// TestTutorialsRunAsWritten runs the commands in web/docs/tutorials.md, with the files
// that the page shows.
func TestTutorialsRunAsWritten(t *testing.T) {
	t.Parallel()
	t.Run("disorder", func(t *testing.T) {
		t.Parallel()
		replay(t, recording(t, "run: disorder"), shown(t, "proteins.fasta", "actr.fasta"))
	})
	t.Run("docking", func(t *testing.T) {
		t.Parallel()
		must.Installed(t, "vina")
		must.Installed(t, "obabel")
		needRDKit(t)
		files := shown(t, "ligands.csv")
		rows := strings.SplitAfter(files["ligands.csv"], "\n")
		must.Equal(t, "compounds of the page", len(rows), 52) // 51 compounds and the heading; nothing follows the last
		files["ligands.csv"] = strings.Join(rows[:6], "")     // five compounds, because all would take minutes
		replay(t, recording(t, "run: docking"), files)
	})
	t.Run("mutation", func(t *testing.T) {
		t.Parallel()
		replay(t, recording(t, "run: mutation"), shown(t, "mutation.yaml"))
	})
}

// recording joins the code blocks with this marker, which must be on the same page.
func recording(t *testing.T, mark string) (text string) {
	t.Helper()
	for _, page := range documentation(t) {
		for _, b := range page.blocks {
			if b.mark == mark {
				text += b.text
			}
		}
	}
	if text == "" {
		t.Fatalf("no block of README.md and web/docs is marked %q", mark)
	}
	return text
}

// shown returns the content of files shown in the documentation, by name.
func shown(t *testing.T, names ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range names {
		files[name] = readme(t, "file: "+name)
	}
	return files
}

// asText makes commands print text even though their output is not a terminal.
const asText = `molrun() { case $1 in login) command molrun "$@" ;; *) command molrun "$@" --json=false ;; esac; }; `

// replay runs the commands of a recording on a new server, in a directory with these
// files, and compares their output. Numbers can differ, and … matches anything.
func replay(t *testing.T, text string, files map[string]string) {
	t.Helper()
	s := startServer(t, serverOptions{})
	s.user("lab", "ann@lab.example")
	p := &person{t: t, s: s, home: t.TempDir(), dir: t.TempDir()}
	for name, content := range files {
		must.Write(t, filepath.Join(p.dir, name), content)
	}
	if !strings.Contains(text, "$ molrun login ") {
		_, err := p.shell("molrun login --local --data molrun-data")
		must.OK(t, err)
	}
	for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
		line, want, _ := strings.Cut(strings.ReplaceAll(step, "\\\n", ""), "\n")
		got, err := p.shell(asText + line)
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, got)
		}
		if !loosePattern(want).MatchString(got) {
			t.Errorf("%s shows\n%s\nand the documentation says\n%s", line, got, want)
		}
	}
}

// loosePattern returns a pattern that matches text with different numbers and spacing.
func loosePattern(text string) *regexp.Regexp {
	number := regexp.MustCompile(`[0-9]+(\\\.[0-9]+)?`)
	pattern := number.ReplaceAllString(regexp.QuoteMeta(strings.TrimSpace(text)), `[0-9.]+`)
	pattern = regexp.MustCompile(` +`).ReplaceAllString(pattern, ` *`)
	return regexp.MustCompile(`(?s)^\s*` + strings.ReplaceAll(pattern, "…", ".*") + `\s*$`)
}
