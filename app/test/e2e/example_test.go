package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app/cli/trial"
	"molrun/app/client"
)

// exampleBound is the timeout of an example on a busy machine.
const exampleBound = 15 * time.Minute

// longExamples take minutes on an idle machine and far longer under the race detector, so only
// make showcases runs them. Tests of their own run something smaller.
var longExamples = []string{"cg-condensate"}

func TestExamplesHaveTheResultsThatTheirFilesState(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{}) // its own: some examples take half a minute
	tester := trial.Tester{API: client.NewWith(s.base, s.user("lab", "ann@lab.example").key, s.http.Transport), Patience: exampleBound}
	for _, a := range everyType(t) {
		t.Run(a.Type, func(t *testing.T) {
			t.Parallel()
			if slices.Contains(longExamples, a.Type) {
				t.Skipf("the example of %s takes minutes: make showcases runs it", a.Type)
			}
			o := tester.Test(t.Context(), a)
			if !o.Ready && len(o.Faults) == 0 {
				t.Skipf("%s is not ready here: %s", a.Type, strings.Join(o.Missing, "; "))
			}
			for _, text := range o.Faults {
				t.Error(text)
			}
			if t.Failed() {
				t.Logf("job %s: %s", o.Job, o.LogTail)
			}
		})
	}
}
