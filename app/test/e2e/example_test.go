package e2e

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app/algorithm"
	"molrun/app/algorithm/builtin"
	"molrun/app/cli/trial"
	"molrun/app/client"
	"molrun/app/test/must"
)

// exampleBound is the maximum runtime of an example on a busy machine.
const exampleBound = 15 * time.Minute

// longExamples take minutes on an idle machine and far longer under the race detector, so
// only `make showcases` runs them. Other tests run smaller versions.
var longExamples = []string{"cg-condensate"}

func TestExamplesHaveTheResultsThatTheirFilesState(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{}) // not shared, because some examples take half a minute
	tester := trial.Tester{API: client.NewWith(s.base, s.user("lab", "ann@lab.example").key, s.http.Transport), Patience: exampleBound}
	all, seed := everyType(t), rand.Uint64()
	t.Logf("the order is that of seed %d", seed)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] }) // examples must not depend on their order
	for _, a := range all {
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
			checkInputs(t, tester.API, a, o.Job)
			if t.Failed() {
				t.Logf("job %s: %s", o.Job, o.LogTail)
			}
		})
	}
}

// checkInputs checks that a job has read the files of its own example, and not files of
// the same name from another.
func checkInputs(t *testing.T, api *client.Client, a *algorithm.File, name string) {
	t.Helper()
	job, err := api.Job(t.Context(), name)
	must.OK(t, err)
	for _, in := range job.Inputs {
		text, err := builtin.ExampleOf(a, in.Filename)
		must.OK(t, err)
		must.Equal(t, in.Filename, in.SHA256, fmt.Sprintf("%x", sha256.Sum256(text)))
	}
}
