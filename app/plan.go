package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/algorithm/fanout"
	"molrun/app/algorithm/placement"
	"molrun/app/base/digest"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
	"molrun/app/job/eta"
)

// Limits of a submission.
const (
	MinPriority = -10
	MaxPriority = 10
)

// plan checks a submission or batch for one algorithm, and creates the jobs. It collects
// all validation errors before it returns an error.
type plan struct {
	*core
	by             Caller
	algorithm      *algorithm.File   // nil if it does not exist
	unavailable    map[string]string // executors that can't run it, and why; others might
	priority       int
	maxRuntime     int64
	setsMaxRuntime bool                                // maxRuntime was requested
	newIDs         []JobID                             // of a batch and its rows
	siblings       map[string]sibling                  // rows by name
	outputs        map[naming.Reference][]resolvedFile // already resolved
	resolved       int                                 // number of resolved files
	makers         map[string]*maker                   // jobs that make requested files, by work
	digests        map[string]string                   // digests of the sequences that makers are named after, by file path
	data           map[string]string                   // site data identifiers, by type of maker
	forMakers      bool                                // whether it plans makers
	expanded       *fanout.Rows                        // nil if the request lists the rows
	reserved       int64                               // bytes reserved for this expansion
	faults         []fault.Field
}

// planJob validates a submission and creates its job. If there are validation errors, it
// returns all of them and no job.
func planJob(ctx context.Context, c *core, by Caller, sub Submission) (*Planned, []fault.Field, error) {
	plan := newPlan(c, by, sub.Type, sub.Version, sub.Priority, sub.MaxRuntime, sub.Faults)
	plan.checkName(sub.Name, "jobName")
	plan.checkLabels(sub.Labels)
	waits, err := plan.dependencies(ctx, sub.After, sub.Name, "after")
	if err != nil {
		return nil, nil, err
	}
	if plan.algorithm == nil || sub.Settings == nil {
		return nil, plan.faults, nil
	}
	rows, err := plan.rows(ctx, []*strictjson.Value{sub.Settings}, func(int) []any { return []any{"body", "settings"} })
	if err != nil || len(plan.faults) > 0 {
		return nil, plan.faults, err
	}
	job := plan.job(plan.newJobID(), sub.Name, rows[0])
	if err := job.label(sub.Labels); err != nil {
		return nil, nil, err
	}
	job.After, job.AfterAny = sub.After.Names, sub.After.Any
	job.setWaits(mergeWaits(rows[0].waits, waits))
	job.Private.Meaning = meaningHash("job", plan.algorithm, rows[0].normalized)
	return plan.planned(job, nil), nil, nil
}

func newPlan(c *core, by Caller, typ, version string, priority int, maxRuntime int64, faults []fault.Field) *plan {
	p := &plan{core: c, by: by, priority: priority, maxRuntime: maxRuntime, setsMaxRuntime: maxRuntime != 0, outputs: map[naming.Reference][]resolvedFile{}, makers: map[string]*maker{}, digests: map[string]string{}, data: map[string]string{}, faults: slices.Clone(faults)}
	if !p.faulty("type") {
		p.findAlgorithm(typ, version)
	}
	switch {
	case priority < MinPriority || priority > MaxPriority:
		p.fault("value", fmt.Sprintf("use a priority from %d to %d", MinPriority, MaxPriority), "priority")
	case priority > 0 && !by.Administers():
		p.fault("value", "only admins can use a priority above 0; omit it or use 0 or less", "priority")
	}
	if p.algorithm != nil {
		p.checkRuntime()
	}
	return p
}

func (p *plan) findAlgorithm(typ, version string) {
	catalogue := p.catalogue
	a, ok := catalogue.Find(typ, version)
	switch known := catalogue.VersionNames(typ); {
	case ok:
		p.algorithm = a
		p.checkReady()
	case len(known) > 0:
		p.fault("unknown", fmt.Sprintf("%s has no version %q; it has %s", typ, version, strings.Join(known, ", ")), "version")
	default:
		msg := fmt.Sprintf("there is no algorithm %q on this server", typ)
		if near := plaintext.Nearest(typ, catalogue.Types()); near != "" {
			msg += fmt.Sprintf("; did you mean %q?", near)
		} else {
			msg += "; GET /algorithms lists them"
		}
		p.fault("unknown", msg, "type")
	}
}

// checkReady checks that at least one of the algorithm's executors can run it. The
// executor of a job can depend on its size, so placeRow checks again.
func (p *plan) checkReady() {
	var nowhere string
	if p.unavailable, nowhere = p.router.Unready(p.algorithm, p.by.routed()); nowhere != "" {
		p.fault("not_ready", nowhere, "type")
	}
}

func (p *plan) checkRuntime() {
	limit := int64(p.algorithm.MaxRuntime.Seconds())
	switch {
	case p.maxRuntime == 0 && !p.faulty("maxRuntimeSeconds"):
		p.maxRuntime = limit
	case p.maxRuntime < 0 || p.maxRuntime > limit:
		p.fault("value", fmt.Sprintf("use 1 to %d seconds, the limit of %s", limit, p.algorithm.Type), "maxRuntimeSeconds")
	}
}

func (p *plan) checkName(name, member string) {
	if p.faulty(member) {
		return
	}
	if msg := naming.CheckName(name); msg != "" {
		p.fault("value", msg, member)
	}
}

func (p *plan) checkLabels(l Labels) { p.addBelow(nil, l.faults(p.by, p.options.Notices)) }

// row is the validated settings of one job.
type row struct {
	sent       *strictjson.Value
	settings   *strictjson.Value // checked, with defaults; nil if invalid
	normalized json.RawMessage   // the same, as passed to programs
	needs      placement.Resources
	executor   string
	maxRuntime int64
	limitOf    string // source of maxRuntime; "" for algorithm or request
	inputs     []Input
	references []Reference
	named      []algorithm.NamedFile // in the order of the references
	facts      algorithm.Facts       // metadata of existing files
	made       []madeFile            // files made by other jobs and not yet among the inputs
	waits      []Dependency          // for the jobs whose results are read
	faults     []fault.Field         // paths are relative to the settings
}

// rows checks the settings of every requested job. loc returns the path of the i-th.
func (p *plan) rows(ctx context.Context, all []*strictjson.Value, loc func(i int) []any) ([]row, error) {
	rows := make([]row, len(all))
	for i, settings := range all {
		if settings == nil { // already reported during decoding
			continue
		}
		rows[i].sent = settings
		if rows[i].settings, rows[i].faults = p.algorithm.CheckSettings(settings); rows[i].settings != nil {
			rows[i].normalized = algorithm.Normalize(rows[i].settings)
		}
	}
	if err := p.resolveFiles(ctx, rows); err != nil {
		return nil, err
	}
	if err := p.findMakers(ctx, rows); err != nil {
		return nil, err
	}
	if err := p.validate(ctx, rows); err != nil {
		return nil, err
	}
	if err := p.awaitMakers(ctx, rows); err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].settings != nil {
			rows[i].faults = append(rows[i].faults, p.placeRow(&rows[i])...)
		}
		p.addBelow(loc(i), p.locateFaults(i, rows[i].faults))
	}
	if len(p.faults) > 0 {
		return nil, nil
	}
	return rows, nil
}

// placeRow determines a job's resources and where it runs. It returns an error for each
// requirement that can't be met there.
func (p *plan) placeRow(r *row) []fault.Field {
	needs, faults := p.algorithm.Needs(r.settings, r.facts)
	if len(faults) > 0 {
		return faults
	}
	r.needs, r.maxRuntime = needs, p.maxRuntime
	if !p.setsMaxRuntime {
		if r.maxRuntime, faults = p.algorithm.Runtime(r.settings, r.facts); len(faults) > 0 {
			return faults
		}
	}
	executor, limit, faults := p.router.ChooseExecutor(p.algorithm, p.by.routed(), needs, r.maxRuntime)
	r.executor = executor
	if why, unready := p.unavailable[executor]; unready {
		if p.faulty("type") { // already reported: no executor can run it
			return nil
		}
		return []fault.Field{{Type: "not_ready", Msg: why}}
	}
	if beyond := p.options.Quota.Beyond(p.by.Organization, p.by.Email, needs); beyond != "" {
		faults = append(faults, fault.Field{Type: "value", Msg: beyond})
	}
	switch {
	case limit.Seconds == 0:
	case p.setsMaxRuntime:
		faults = append(faults, fault.Field{Type: "value", Msg: limit.Message()})
	default:
		r.maxRuntime, r.limitOf = limit.Seconds, limit.Source
	}
	return faults
}

// validate runs the algorithm's own validator on the rows that it can check.
func (p *plan) validate(ctx context.Context, rows []row) error {
	if !p.algorithm.HasValidator() {
		return nil
	}
	var asked []algorithm.ValidatorRow
	var index []int
	for i, r := range rows {
		if !p.canValidate(r) {
			continue
		}
		question, err := p.validatorInput(r)
		if err != nil {
			return err
		}
		asked, index = append(asked, question), append(index, i)
	}
	results, err := p.algorithm.RunValidator(ctx, p.options.Validators, p.by.Organization+"/"+p.by.Email, asked)
	if err != nil {
		return err
	}
	for k, faults := range results {
		r := &rows[index[k]]
		r.faults = algorithm.MergeFaults(r.faults, faults)
		r.summarize(asked[k].Named)
	}
	return nil
}

// summarize sets the summary of each input from the validator's output.
func (r *row) summarize(named map[string][]algorithm.NamedFile) {
	seen := map[string]int{}
	for i := range r.inputs {
		in := &r.inputs[i]
		if k := seen[in.Setting]; k < len(named[in.Setting]) {
			in.Summary = named[in.Setting][k].Summary
		}
		seen[in.Setting]++
	}
}

// canValidate reports whether the validator can check a row. It can't if a file is
// missing, or if the schema check found errors and the validator expects valid settings.
func (p *plan) canValidate(r row) bool {
	if r.sent == nil || len(r.faults) > 0 && !p.algorithm.ValidatesInvalid() {
		return false
	}
	for _, f := range p.algorithm.Parameters.Files() {
		given := r.sent.Member(f.Name)
		found := slices.ContainsFunc(r.references, func(ref Reference) bool { return ref.Setting == f.Name })
		if given != nil && given.Kind != strictjson.Null && !found {
			return false
		}
	}
	return !slices.ContainsFunc(r.references, func(ref Reference) bool { return ref.Pending }) &&
		!slices.ContainsFunc(r.faults, func(f fault.Field) bool { return f.Type == "file" })
}

// validatorInput returns the validator's input for a row: the settings as passed to the
// program, or as submitted if they are invalid.
func (p *plan) validatorInput(r row) (algorithm.ValidatorRow, error) {
	q := algorithm.ValidatorRow{Settings: cmp.Or(r.settings, r.sent), Right: r.settings != nil, Facts: r.facts, Paths: algorithm.Paths{Program: p.options.Program, Files: map[string][]string{}}, Named: map[string][]algorithm.NamedFile{}}
	for i, ref := range r.references {
		path, err := p.referencePath(ref)
		if err != nil {
			return q, err
		}
		q.Paths.Files[ref.Setting] = append(q.Paths.Files[ref.Setting], path)
		q.Named[ref.Setting] = append(q.Named[ref.Setting], r.named[i])
	}
	return q, nil
}

// job creates the queued job for a row.
func (p *plan) job(id JobID, name string, r row) *Job {
	now := unit.At(p.now())
	return &Job{
		ID:           id,
		Name:         name,
		Type:         p.algorithm.Type,
		Version:      p.algorithm.Version,
		Status:       Queued,
		Settings:     strictjson.Compact(r.sent),
		Inputs:       r.inputs,
		Organization: p.by.Organization,
		Email:        p.by.Email,
		Priority:     p.priority,
		MaxRuntime:   r.maxRuntime,
		CreatedAt:    now,
		Executor:     r.executor,
		Private: Private{
			Normalized:     r.normalized,
			SetsMaxRuntime: p.setsMaxRuntime,
			Definition:     p.algorithm.Digest,
			Folder:         p.algorithm.Folder.DigestOrEmpty(),
			Needs:          r.needs,
			Class:          p.class(r),
			Size:           p.algorithm.Size(r.settings, r.facts),
			Facts:          p.algorithm.StoredFacts(r.facts),
			LimitOf:        r.limitOf,
			Retries:        p.algorithm.Retries,
			References:     r.references,
			QueuedAt:       now,
		},
	}
}

// class returns the class of jobs with run times comparable to a row's, or "" for a
// batch.
func (p *plan) class(r row) string {
	if r.settings == nil {
		return ""
	}
	return classOf(p.algorithm, r.executor, p.router.Placement(p.algorithm, r.executor, p.by.routed(), r.needs), r.needs.GPUs)
}

// classOf returns the name of a class of comparable jobs.
func classOf(a *algorithm.File, executor string, where placement.Placement, gpus int) string {
	return eta.Class{
		Type: a.Type, Version: a.Version, Executor: executor, Where: []string{where.Partition, where.Constraint}, GPUs: gpus,
		Formula: a.SizeFormula(), Declared: eta.Declared{Seconds: a.ExpectedSeconds, PerSize: a.SecondsPerSize},
	}.Name()
}

// factsOf returns the metadata of files that is known without reading them.
func factsOf(references []Reference) algorithm.Facts {
	facts := algorithm.Facts{}
	for _, ref := range references {
		facts.AddFile(ref.Setting, ref.Size, ref.Pending)
	}
	return facts
}

// meaningHash identifies work by its algorithm, version, and settings including defaults.
// File references are hashed as written.
func meaningHash(kind string, a *algorithm.File, rows ...json.RawMessage) string {
	parts := [][]byte{[]byte(hashVersion), []byte(kind), []byte(a.Type), []byte(a.Version)}
	for _, row := range rows {
		parts = append(parts, row)
	}
	return digest.Parts(parts...)
}

// fault records an error in the request body.
func (p *plan) fault(kind, msg string, loc ...any) {
	p.addBelow([]any{"body"}, []fault.Field{{Loc: loc, Msg: msg, Type: kind}})
}

// maxFaults limits the errors reported for a batch.
const maxFaults = 1000

// addBelow records errors whose paths are relative to loc.
func (p *plan) addBelow(loc []any, faults []fault.Field) {
	for _, f := range faults {
		if len(p.faults) >= maxFaults {
			return
		}
		f.Loc = slices.Concat(loc, f.Loc)
		p.faults = append(p.faults, f)
	}
}

// faulty reports whether a member of the body has a recorded error.
func (p *plan) faulty(member string) bool {
	return slices.ContainsFunc(p.faults, func(f fault.Field) bool { return len(f.Loc) > 1 && f.Loc[1] == member })
}
