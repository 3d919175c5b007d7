package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestSpreadsheetsBecomeJobs submits a table in the formats of spreadsheet programs, and
// a table whose files are uploaded along with it.
func TestSpreadsheetsBecomeJobs(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	p := u.person()
	write := func(name, text string) { must.Write(t, filepath.Join(p.dir, name), text) }
	const sequence = "DSHAKRHHGYKRKFHEKHHSHRGY"
	write("german.csv", "sep=;\r\njobName;sequence;pH;;\r\nKr\xfcger;"+sequence+";7,4;;\r\n;"+sequence+";6,5;;\r\n;;;;\r\n")
	write("book.xlsx", must.Workbook(t, []any{"jobName", "sequence", "pH"}, []any{"\u00a0Book", sequence, 7.4}, []any{nil, sequence, 6.5}))
	write("text.txt", "jobName\tsequence\tpH\rText\t"+sequence+"\t7,4\r\t"+sequence+"\t6,5\r")
	write("a.fasta", sequence)
	write("files.csv", "jobName;fasta;pH\nFile;a.fasta;7,4\n;a.fasta;6,5\n")
	for name, args := range map[string][]string{"Krüger": {"german.csv"}, "Book": {"book.xlsx"}, "Text": {"text.txt"}, "File": {"files.csv", "--each", "fasta"}} {
		p.ok(append([]string{"batch", "sequence-properties", "-n", "b" + name, "--wait", "-i"}, args...)...)
		for job, pH := range map[string]string{name: "7.4", "b" + name + "-2": "6.5"} {
			if j := u.members(job); string(j["status"]) != `"COMPLETED"` || !strings.Contains(string(j["settings"]), `"pH":`+pH) {
				t.Errorf("%s: %s, %s", job, j["status"], j["settings"])
			}
		}
	}
	write("two.csv", "sequence;pH\n"+sequence+";1,234\n")
	p.fails(exitInvalid, `molrun: body.fanOut.each.*: line 2, column "pH": "1,234" is ambiguous: it can mean 1.234 or 1234`, "batch", "sequence-properties", "-i", "two.csv")
}
