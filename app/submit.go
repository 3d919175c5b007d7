package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits of a submission.
const (
	MinPriority = -10
	MaxPriority = 10
)

// Submission asks for one job. Settings and Body are the JSON as sent; Faults
// are those already found in it, to be told together with the rest.
type Submission struct {
	Name       string
	Type       string
	Version    string // "" takes the algorithm's default
	Settings   *Value // an object; nil where it is among Faults
	Priority   int
	MaxRuntime int64  // seconds; 0 takes the algorithm's limit
	Body       *Value // the whole body
	Faults     []FieldError
}

// Record is a job's JSON as clients see it now, progress included.
type Record = json.RawMessage

// Submit queues a job. Submitting the same again under the same name returns
// the job already there, whatever has become of its files and algorithm;
// other work under that name is refused.
func (s *Service) Submit(ctx context.Context, by Caller, sub Submission) (rec Record, created bool, err error) {
	sent := sentHash("job", sub.Body)
	rec, err = s.sentBefore(ctx, by, sub.Name, sent)
	if err != nil || rec != nil {
		return rec, false, err
	}
	job, definition, faults, err := s.prepare(ctx, by, sub)
	if err == nil {
		err = InvalidFields(faults...)
	}
	if err != nil {
		return nil, false, err
	}
	job.Private.Sent = sent
	return s.insert(ctx, job, nil, definition)
}

// Validation is what Validate finds.
type Validation struct {
	Valid      bool
	Normalized json.RawMessage // settings as the program would see them; nil where they are faulty
	Detail     []FieldError
}

// Validate checks a submission as Submit does and queues nothing.
func (s *Service) Validate(ctx context.Context, by Caller, sub Submission) (*Validation, error) {
	job, _, faults, err := s.prepare(ctx, by, sub)
	if err != nil {
		return nil, err
	}
	v := &Validation{Valid: len(faults) == 0, Detail: faults}
	if job != nil && v.Valid {
		v.Normalized = job.Private.Normalized
	}
	return v, nil
}

// sentBefore gives the record of the job that this very body made, nil where
// there is none.
func (s *Service) sentBefore(ctx context.Context, by Caller, name, sent string) (rec Record, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		old, err := tx.JobNamed(by.Organization, name)
		if errors.Is(err, NotFound) || err == nil && old.Private.Sent != sent {
			return nil
		}
		if err != nil {
			return err
		}
		rec, err = tx.JobJSON(old.ID)
		if err == nil {
			rec = s.show(StoredJob{old.ID, rec})
		}
		return err
	})
	return rec, err
}

// prepare checks a submission and makes the job that it asks for. It gives
// every fault; then the job is of no use.
func (s *Service) prepare(ctx context.Context, by Caller, sub Submission) (*Job, *Algorithm, []FieldError, error) {
	order := s.newOrder(by, sub.Type, sub.Version, sub.Priority, sub.MaxRuntime, sub.Faults)
	order.checkName(sub.Name, "jobName")
	if order.algorithm == nil || sub.Settings == nil {
		return nil, nil, order.faults, nil
	}
	rows, err := order.rows(ctx, []*Value{sub.Settings}, func(int) []any { return []any{"body", "settings"} })
	if err != nil || len(order.faults) > 0 {
		return nil, nil, order.faults, err
	}
	job := order.job(sub.Name, rows[0])
	job.Private.Meaning = meaningHash("job", order.algorithm, rows[0].normalized)
	return job, order.algorithm, nil, nil
}

// insert queues a job with its subjobs, unless the name is taken.
func (s *Service) insert(ctx context.Context, job *Job, subjobs []*Job, a *Algorithm) (rec Record, created bool, err error) {
	err = s.store.Update(ctx, func(tx Tx) error {
		rec, created = nil, false
		old, err := tx.JobNamed(job.Organization, job.Name)
		switch {
		case err == nil && old.sameWork(job):
			rec, err = tx.JobJSON(old.ID)
			return err
		case err == nil:
			return Errorf(JobAlreadyExists, "job %q already exists with other content; choose another jobName, or send the same again to get that job", job.Name)
		case !errors.Is(err, NotFound):
			return err
		}
		created = true
		return putNew(tx, job, subjobs, a)
	})
	if err != nil {
		return nil, false, err
	}
	if created {
		s.wakeRunner()
		rec, err = job.Encode()
	} else {
		rec = s.show(StoredJob{job.ID, rec})
	}
	return rec, created, err
}

func putNew(tx Tx, job *Job, subjobs []*Job, a *Algorithm) error {
	if _, err := tx.Definition(a.Digest); errors.Is(err, NotFound) {
		if err := tx.PutDefinition(a.Digest, a.Source); err != nil {
			return err
		}
	}
	if err := tx.PutJob(job); err != nil {
		return err
	}
	for _, sub := range subjobs {
		if _, err := tx.JobNamed(sub.Organization, sub.Name); err == nil {
			return Errorf(JobAlreadyExists, "a job %q already exists, so the batch can't have a row of that name; nothing was created: choose another batchName or give jobNames", sub.Name)
		} else if !errors.Is(err, NotFound) {
			return err
		}
		if err := tx.PutJob(sub); err != nil {
			return err
		}
	}
	for _, j := range append(subjobs, job) {
		if err := sourcesRemain(tx, j); err != nil {
			return err
		}
	}
	return nil
}

// sourcesRemain sees to it that no input was deleted since it was resolved.
func sourcesRemain(tx Tx, j *Job) error {
	for i, src := range j.Private.Sources {
		var err error
		if src.Upload != "" {
			_, err = tx.Upload(src.Upload)
		} else {
			_, err = tx.Job(src.Job)
		}
		if errors.Is(err, NotFound) {
			return InvalidFields(FieldError{
				Loc: []any{"body", "settings", src.Setting}, Type: "file",
				Msg: fmt.Sprintf("the file %q was deleted just now; upload it again", j.Inputs[i].Filename),
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// order is what a submission or a batch asks of one algorithm, while it is
// checked.
type order struct {
	service    *Service
	by         Caller
	algorithm  *Algorithm // nil where there is none such
	executor   string
	priority   int
	maxRuntime int64
	faults     []FieldError
}

func (s *Service) newOrder(by Caller, typ, version string, priority int, maxRuntime int64, faults []FieldError) *order {
	o := &order{service: s, by: by, priority: priority, maxRuntime: maxRuntime, faults: slices.Clone(faults)}
	if !o.faulty("type") {
		o.findAlgorithm(typ, version)
	}
	switch {
	case priority < MinPriority || priority > MaxPriority:
		o.fault("value", fmt.Sprintf("use a priority from %d to %d", MinPriority, MaxPriority), "priority")
	case priority > 0 && by.Role != RoleAdmin:
		o.fault("value", "only admins may use a priority above 0; leave it out or use 0 or less", "priority")
	}
	if o.algorithm != nil {
		o.checkRuntime()
	}
	return o
}

// fault adds a fault of the body.
func (o *order) fault(kind, msg string, loc ...any) {
	o.faults = append(o.faults, FieldError{Loc: append([]any{"body"}, loc...), Msg: msg, Type: kind})
}

// faulty reports whether a member of the body has a fault already.
func (o *order) faulty(member string) bool {
	return slices.ContainsFunc(o.faults, func(f FieldError) bool { return len(f.Loc) > 1 && f.Loc[1] == member })
}

func (o *order) checkName(name, member string) {
	if o.faulty(member) {
		return
	}
	if msg := CheckName(name); msg != "" {
		o.fault("value", msg, member)
	}
}

func (o *order) findAlgorithm(typ, version string) {
	catalogue := o.service.catalogue
	a, ok := catalogue.Find(typ, version)
	switch known := catalogue.VersionNames(typ); {
	case ok:
		o.algorithm = a
		o.checkReady()
	case len(known) > 0:
		o.fault("unknown", fmt.Sprintf("%s has no version %q; it has %s", typ, version, strings.Join(known, ", ")), "version")
	default:
		msg := fmt.Sprintf("there is no algorithm %q here", typ)
		if near := Nearest(typ, catalogue.Types()); near != "" {
			msg += fmt.Sprintf("; did you mean %q?", near)
		} else {
			msg += "; GET /algorithms lists them"
		}
		o.fault("unknown", msg, "type")
	}
}

func (o *order) checkReady() {
	o.executor = o.service.executorOf(o.algorithm)
	machine, ok := o.service.options.Machines[o.executor]
	if !ok {
		o.fault("not_ready", fmt.Sprintf("%s runs on the executor %q, which is not configured here", o.algorithm.Type, o.executor), "type")
		return
	}
	if missing := o.algorithm.Missing(machine); len(missing) > 0 {
		o.fault("not_ready", fmt.Sprintf("%s is not ready on this server: %s", o.algorithm.Type, strings.Join(missing, "; ")), "type")
	}
}

// executorOf says where an algorithm's jobs run.
func (s *Service) executorOf(a *Algorithm) string {
	if a.Executor == "" || a.Executor == "any" {
		return s.options.Executor
	}
	return a.Executor
}

func (o *order) checkRuntime() {
	limit := int64(o.algorithm.MaxRuntime.Seconds())
	switch {
	case o.maxRuntime == 0 && !o.faulty("maxRuntimeSeconds"):
		o.maxRuntime = limit
	case o.maxRuntime < 0 || o.maxRuntime > limit:
		o.fault("value", fmt.Sprintf("use 1 to %d seconds, the limit of %s", limit, o.algorithm.Type), "maxRuntimeSeconds")
	}
}

// row is the settings of one job, checked.
type row struct {
	sent       *Value
	normalized json.RawMessage
	needs      Resources
	inputs     []Input
	sources    []Source
}

// rows checks the settings of every job that is asked for. loc gives the path
// of the i-th.
func (o *order) rows(ctx context.Context, all []*Value, loc func(i int) []any) ([]row, error) {
	rows := make([]row, len(all))
	for i, settings := range all {
		if settings == nil { // told while decoding
			continue
		}
		rows[i].sent = settings
		var faults []FieldError
		rows[i].normalized, faults = o.algorithm.CheckSettings(settings)
		if len(faults) == 0 {
			rows[i].needs, faults = o.needs(rows[i].normalized)
		}
		o.addBelow(loc(i), faults)
	}
	if err := o.resolveFiles(ctx, rows, loc); err != nil {
		return nil, err
	}
	if len(o.faults) > 0 {
		return nil, nil
	}
	return rows, o.validate(ctx, rows, loc)
}

// maxFaults bounds the answer to a batch in which every row is wrong.
const maxFaults = 1000

// addBelow adds faults whose paths begin below loc.
func (o *order) addBelow(loc []any, faults []FieldError) {
	for _, f := range faults {
		if len(o.faults) >= maxFaults {
			return
		}
		f.Loc = slices.Concat(loc, f.Loc)
		o.faults = append(o.faults, f)
	}
}

// needs gives a job's resources, or the fault that no machine here has them.
func (o *order) needs(normalized json.RawMessage) (Resources, []FieldError) {
	needs, faults := o.algorithm.Needs(normalized)
	machine, known := o.service.options.Machines[o.executor]
	if len(faults) > 0 || !known || !machine.Local {
		return needs, faults
	}
	var short []string
	if needs.CPUs > machine.CPUs {
		short = append(short, fmt.Sprintf("%d CPUs of %d", needs.CPUs, machine.CPUs))
	}
	if needs.MemoryBytes > machine.MemoryBytes {
		short = append(short, fmt.Sprintf("%s of memory of %s", byteText(needs.MemoryBytes), byteText(machine.MemoryBytes)))
	}
	if needs.GPUs > machine.GPUs {
		short = append(short, fmt.Sprintf("%d GPUs of %d", needs.GPUs, machine.GPUs))
	}
	if len(short) > 0 {
		faults = append(faults, FieldError{
			Type: "value",
			Msg:  "the job would need more than this server has: " + strings.Join(short, ", ") + "; ask for less",
		})
	}
	return needs, faults
}

// byteText writes a size as people do.
func byteText(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	size, prefix := float64(n)/unit, 0
	for size >= unit && prefix < 4 {
		size /= unit
		prefix++
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTP"[prefix])
}

// validate has the algorithm's own validator read the settings.
func (o *order) validate(ctx context.Context, rows []row, loc func(i int) []any) error {
	if !o.algorithm.HasValidator() {
		return nil
	}
	asked := make([]ValidatorRow, len(rows))
	for i, r := range rows {
		asked[i] = ValidatorRow{Normalized: r.normalized, Paths: Paths{Program: o.service.options.Program, Files: map[string]string{}}}
		for _, src := range r.sources {
			path, err := o.service.SourcePath(src)
			if err != nil {
				return err
			}
			asked[i].Paths.Files[src.Setting] = path
		}
	}
	answers, err := o.algorithm.RunValidator(ctx, asked)
	if err != nil {
		return err
	}
	for i, faults := range answers {
		o.addBelow(loc(i), faults)
	}
	return nil
}

// job makes the queued job of a row.
func (o *order) job(name string, r row) *Job {
	now := At(o.service.now())
	return &Job{
		ID:           o.service.newJobID(),
		Name:         name,
		Type:         o.algorithm.Type,
		Version:      o.algorithm.Version,
		Status:       Queued,
		Settings:     compact(r.sent),
		Inputs:       r.inputs,
		Organization: o.by.Organization,
		Email:        o.by.Email,
		Priority:     o.priority,
		MaxRuntime:   o.maxRuntime,
		CreatedAt:    now,
		Executor:     o.executor,
		Private: Private{
			Normalized: r.normalized,
			Definition: o.algorithm.Digest,
			Needs:      r.needs,
			Retries:    o.algorithm.Retries,
			Sources:    r.sources,
			QueuedAt:   now,
		},
	}
}

// compact gives the settings as sent, without the space between.
func compact(v *Value) json.RawMessage {
	if v == nil {
		return nil
	}
	b, err := encode(json.RawMessage(v.Raw))
	if err != nil {
		return v.AppendCanonical(nil)
	}
	return b
}
