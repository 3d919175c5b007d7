package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
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

// Sampling flags for the tests of all algorithms with bad inputs and hostile texts. `make
// algorithms` runs every case.
var (
	trialRuns = flag.Int("trials", 16, "number of jobs that a test of bad inputs or hostile texts runs; 0 means all")
	trialSeed = flag.Uint64("trialseed", 1, "seed for choosing these jobs")
	trialType = flag.String("trialtypes", "", "comma-separated types to test; empty means all")
)

// trialSeconds is the maximum runtime of such a job. A job that takes longer counts as
// hanging.
const trialSeconds = 600

// everyType returns the algorithms that come with molrun.
func everyType(t *testing.T) []*algorithm.File {
	t.Helper()
	catalogue, err := builtin.Catalogue("", []string{builtin.All}, func(m algorithm.Mistake) { t.Error(m) })
	must.OK(t, err)
	var all []*algorithm.File
	for _, typ := range catalogue.Types() {
		a, _ := catalogue.Find(typ, "")
		all = append(all, a)
	}
	return all
}

// trials submits modified examples of all algorithms to a server.
type trials struct {
	t      *testing.T
	u      user
	tester trial.Tester
	types  []*algorithm.File // types that are ready on this machine
	random *rand.Rand
	files  map[string]string // references to uploads, by file name
}

func newTrials(t *testing.T, sandbox string) *trials {
	t.Helper()
	s := startServer(t, serverOptions{config: fmt.Sprintf("[runner]\nsandbox = %q\n[database]\nfile_system = \"any\"\n", sandbox)})
	u := s.user("lab", "ann@lab.example")
	b := &trials{
		t: t, u: u, files: map[string]string{},
		tester: trial.Tester{API: client.NewWith(s.base, u.key, s.http.Transport)},
		random: rand.New(rand.NewPCG(*trialSeed, 0)),
	}
	for _, a := range everyType(t) {
		if *trialType != "" && !slices.Contains(strings.Split(*trialType, ","), a.Type) {
			continue
		}
		offered, err := b.tester.API.Algorithm(t.Context(), a.Type, a.Version)
		must.OK(t, err)
		if !offered.Ready {
			t.Logf("%s is left out: %s", a.Type, strings.Join(offered.Missing, "; "))
			continue
		}
		b.types = append(b.types, a)
	}
	return b
}

// example returns the settings of an algorithm's example, with its files uploaded.
func (b *trials) example(a *algorithm.File) map[string]any {
	b.t.Helper()
	text, err := b.tester.Settings(b.t.Context(), a)
	must.OK(b.t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var settings map[string]any
	must.OK(b.t, decoder.Decode(&settings))
	return settings
}

// file uploads a file unless it has already been uploaded, and returns its reference.
func (b *trials) file(name string, text func() []byte) string {
	b.t.Helper()
	if b.files[name] == "" {
		folder, base := filepath.Split(name)
		reference, err := b.tester.Upload(b.t.Context(), strings.TrimSuffix(folder, "/"), base, text())
		must.OK(b.t, err)
		b.files[name] = reference
	}
	return b.files[name]
}

// trialCase is a submission of a modified example.
type trialCase struct {
	algorithm *algorithm.File
	name      string // what was changed
	settings  map[string]any
	seconds   int64 // runtime limit, which the job may reach; 0 means trialSeconds, where reaching it counts as hanging
	wanted    *badRow
	harmless  bool   // the job can produce a result, the same as the example's
	job       string // name of the job; "" if not submitted
	refusal   string // the response if validation failed
}

func (c *trialCase) String() string { return c.algorithm.Type + ": " + c.name }

// changed returns settings with one value replaced. In a list, it replaces the first
// item.
func changed(p *algorithm.Parameter, settings map[string]any, value any) map[string]any {
	out := maps.Clone(settings)
	if list, ok := out[p.Name].([]any); ok || isList(p) {
		list = slices.Clone(list)
		out[p.Name] = append([]any{value}, list[min(1, len(list)):]...)
		return out
	}
	out[p.Name] = value
	return out
}

func isList(p *algorithm.Parameter) bool {
	var schema struct{ Type any }
	return json.Unmarshal(p.Schema, &schema) == nil && schema.Type == "array"
}

// refused validates a submission and reports whether it is rejected. Each error must have
// a location and a message.
func (b *trials) refused(c *trialCase) bool {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{"jobName": "x", "type": c.algorithm.Type, "version": c.algorithm.Version, "settings": c.settings})
	must.OK(b.t, err)
	answer := b.u.do("POST", "/validate-job", string(body))
	var verdict struct {
		Valid  bool
		Detail []struct {
			Loc []any
			Msg string
		}
	}
	if answer.status == 422 { // the request itself is invalid
		c.refusal = string(answer.body)
		answer.detail()
		return true
	}
	answer.want(200).into(&verdict)
	if verdict.Valid {
		return false
	}
	c.refusal = string(answer.body)
	for _, d := range verdict.Detail {
		if len(d.Loc) < 2 || d.Msg == "" {
			b.t.Errorf("%s: a fault without place or words: %s", c, answer.body)
		}
	}
	return true
}

// perType is the maximum number of jobs of one type in a sample, because some take long.
const perType = 2

// sample returns a random sample of the cases, with few of each type, or all cases if
// trialRuns is 0.
func (b *trials) sample(all []*trialCase) []*trialCase {
	if *trialRuns == 0 {
		return all
	}
	b.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	of := map[string]int{}
	some := slices.DeleteFunc(all, func(c *trialCase) bool { of[c.algorithm.Type]++; return of[c.algorithm.Type] > perType })
	return some[:min(len(some), *trialRuns)]
}

// run submits cases and calls check for each finished job.
func (b *trials) run(all []*trialCase, check func(*trialCase, record)) {
	b.t.Helper()
	for i, c := range all {
		c.job = fmt.Sprintf("%s-%d", c.algorithm.Type, i)
		body, err := json.Marshal(map[string]any{
			"jobName": c.job, "type": c.algorithm.Type, "version": c.algorithm.Version, "settings": c.settings,
			"maxRuntimeSeconds": min(cmp.Or(c.seconds, trialSeconds), int64(c.algorithm.MaxRuntime.Seconds())),
		})
		must.OK(b.t, err)
		b.u.do("POST", "/submit-job", string(body)).want(200)
	}
	for _, c := range all {
		r := b.u.untilWithin(2*trialSeconds*time.Second, c.job, "finished", func(r record) bool { return r.Status == "COMPLETED" || r.Status == "FAILED" })
		if r.Failure != nil && r.Failure.Code == "TIMEOUT" && c.seconds == 0 {
			b.t.Errorf("%s: it hangs: %s", c, r.Failure.Message)
		}
		check(c, r)
	}
}
