package algorithm

import (
	"testing"

	"molrun/app/base/strictjson"
	"molrun/app/test/must"
)

func TestMistakesInMakers(t *testing.T) {
	// Lines 5 to 19.
	const file = `[[parameters]]
name = "chains"
file = [".fasta"]

[[parameters]]
name = "msa"
enum = ["none", "search"]

[[parameters]]
name = "many"
file = [".fasta"]
type = "array"

[[parameters]]
name = "rows"
`
	const good = "file = [\".a3m\"]\n[parameters.job]\nif = \"settings.msa == 'search'\"\ntype = \"msa\"\noutput = \"rows\"\n" // lines 20 to 24
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"right":               {good + `settings = { a = "{files.chains}", b = true, c = [1] }`, nil},
		"no file":             {"type = \"string\"\n" + good[len("file = [\".a3m\"]\n"):], []string{`21: job creates a file, but the parameter "rows" is not a file`}},
		"required":            {"required = true\n" + good, []string{`22: the parameter "rows" is required`}},
		"no output":           {good[:len(good)-len("output = \"rows\"\n")], []string{"21: output is missing in job"}},
		"unknown key":         {good + "outptu = 1", []string{`25: unknown key "outptu" in job; did you mean "output"?`}},
		"unknown setting":     {"file = [\".a3m\"]\n[parameters.job]\nif = \"settings.mas == 'search'\"\ntype = \"msa\"\noutput = \"rows\"", []string{`22: if = "settings.mas == 'search'": `}},
		"never":               {"file = [\".a3m\"]\n[parameters.job]\nif = \"settings.msa == 'serch'\"\ntype = \"msa\"\noutput = \"rows\"", []string{`22: the setting "msa" can never be "serch"`}},
		"always":              {"file = [\".a3m\"]\n[parameters.job]\nif = \"true\"\ntype = \"msa\"\noutput = \"rows\"", []string{`22: if = "true" reads no setting`}},
		"facts":               {"file = [\".a3m\"]\n[parameters.job]\nif = \"facts.chains.bytes > 1\"\ntype = \"msa\"\noutput = \"rows\"", []string{`22: if = "facts.chains.bytes > 1": `}},
		"unknown file":        {good + `settings = { a = "{files.chain}" }`, []string{`25: no parameter is named "chain"; did you mean "chains"?`}},
		"no file of the user": {good + `settings = { a = "{files.rows}", b = "{files.many}", c = "{files.msa}" }`, []string{`25: the parameter "rows" is not a single file provided by the user`, `25: the parameter "many" is not a single file`, `25: the parameter "msa" is not a single file`}},
		"part of a text":      {good + `settings = { a = "x{files.chains}", b = "{settings.msa}" }`, []string{`25: "x{files.chains}" must be a value, or exactly {files.NAME}`, `25: "{settings.msa}" must be a value`}},
	} {
		t.Run(name, func(t *testing.T) { checkMistakes(t, head+file+tt.text+"\n", tt.want...) })
	}
	rows := parseOK(t, head+file+good+`settings = { z = "{files.chains}", b = true, a = "{files.chains}" }`).Parameters.Named("rows").Maker
	must.Equal(t, "files", rows.Files, []MakerFile{{"a", "chains"}, {"z", "chains"}})
	for text, want := range map[string]bool{`{"msa":"search"}`: true, `{"msa":"none"}`: false, `{}`: false} {
		settings, err := strictjson.Parse([]byte(text))
		must.OK(t, err)
		must.Equal(t, text, rows.Requested(settings.Members), want)
	}
}
