package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// Memory that grows with a file is known at submission: an alignment for which the machine
// is too small is refused there, with a sentence at the file, and no job waits for ever.
func TestFilesTooLargeForTheMachineAreRefused(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(bin, "fasttree"), []byte("#!/bin/sh\n"), 0o700)) // nothing is run
	s := startServer(t, serverOptions{
		config: "[runner]\ncpus = 1\nmemory = \"2GiB\"\n",
		env:    []string{"PATH=" + bin + ":" + os.Getenv("PATH")},
	})
	u := s.user("lab", "ann@lab.example")
	alignment := func(columns int) string {
		var text strings.Builder
		for i := range 50 {
			fmt.Fprintf(&text, ">s%d\n%s\n", i, strings.Repeat("MKVLAAGIVG", columns/10))
		}
		return text.String()
	}
	submission := func(file string) string {
		return fmt.Sprintf(`{"jobName": "x", "type": "fasttree", "settings": {"alignment": %q}}`, file)
	}
	small, large := u.upload("small.fasta", alignment(1000)), u.upload("large.fasta", alignment(190_000))
	if got := u.do("POST", "/validate-job", submission(small)).want(200).body; !strings.Contains(string(got), `"valid":true`) {
		t.Errorf("the small alignment is refused: %s", got)
	}
	refused := u.do("POST", "/submit-job", submission(large)).want(422)
	for _, words := range []string{`"alignment"`, "the job would need more than this server has: 2.", "of memory of 2.0 GiB", "grows with this file; give a smaller one"} {
		if !strings.Contains(string(refused.body), words) {
			t.Errorf("%q is not in %s", words, refused.body)
		}
	}
}
