package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/test/must"
)

// tryFiles has an algorithm with its own directory, whose program fails until a gate is
// open.
var tryFiles = map[string]string{
	"try/algorithm.toml": `format = 1
type = "try"
version = "1"
command = ["{folder}/try.sh", "@DIR@/gates/go", "{out}/word.txt"]

[[parameters]]
name = "input"
file = [".txt"]

[sandbox]
read = ["@DIR@/gates"]
`,
	"try/try.sh": "#!/bin/sh\n[ -e \"$1\" ] || exit 3\necho one > \"$2\"\n",
}

// TestRetryFindsTheFolderOfTheAlgorithm edits the algorithm's directory after a job has
// failed, and lets the service clean up copies that no job needs.
func TestRetryFindsTheFolderOfTheAlgorithm(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{algorithms: tryFiles})
	u := s.user("lab", "ann@lab.example")
	u.submit("failed", "try", `{}`)
	u.do("POST", "/submit-batch", batchBody("batch", "try", `{}`)).want(200)
	for _, name := range []string{"failed", "batch"} {
		if r := u.finished(name); r.Status != "FAILED" {
			t.Fatalf("%+v", r)
		}
	}
	s.algorithmFile("try/try.sh", strings.Replace(tryFiles["try/try.sh"], "one", "two", 1))
	s.stop()
	kept, err := filepath.Glob(filepath.Join(s.data(), "algorithms", "*"))
	must.OK(t, err)
	old := time.Now().Add(-48 * time.Hour)
	for _, dir := range kept {
		must.OK(t, os.Chtimes(dir, old, old))
	}
	s.start()
	u.submit("swept", "try", `{}`) // stores the new directory; by then the cleanup has begun
	u.finished("swept")
	s.gate("go").open(t)
	for _, name := range []string{"failed", "batch"} {
		u.do("POST", "/jobs/"+name+"/retry", nil).want(200)
		u.completed(name)
	}
	for _, name := range []string{"failed", "batch-1"} {
		u.wantResult(name, "word.txt", "one\n")
	}

	// The old directory is no longer needed.
	s.stop()
	for _, dir := range kept {
		must.OK(t, os.Chtimes(dir, old, old))
	}
	s.start()
	s.eventually("the old folder is swept", func() bool {
		_, err := os.Stat(kept[0])
		return os.IsNotExist(err)
	})
}
