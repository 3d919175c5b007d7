package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/fault"
	"molrun/app/nearest"
	"molrun/app/placement"
	"molrun/app/strictjson"
	"molrun/app/unit"
)

// order is what a submission or a batch asks of one algorithm, while it is
// checked.
type order struct {
	service    *Service
	by         Caller
	algorithm  *algorithm.File        // nil where there is none such
	unready    map[string]fault.Field // executors where it can't run, and why; others of its may do
	priority   int
	maxRuntime int64
	asksTime   bool // it gives maxRuntime
	faults     []fault.Field
}

func (s *Service) newOrder(by Caller, typ, version string, priority int, maxRuntime int64, faults []fault.Field) *order {
	o := &order{service: s, by: by, priority: priority, maxRuntime: maxRuntime, asksTime: maxRuntime != 0, faults: slices.Clone(faults)}
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
	o.addBelow([]any{"body"}, []fault.Field{{Loc: loc, Msg: msg, Type: kind}})
}

// faulty reports whether a member of the body has a fault already.
func (o *order) faulty(member string) bool {
	return slices.ContainsFunc(o.faults, func(f fault.Field) bool { return len(f.Loc) > 1 && f.Loc[1] == member })
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
		if near := nearest.Of(typ, catalogue.Types()); near != "" {
			msg += fmt.Sprintf("; did you mean %q?", near)
		} else {
			msg += "; GET /algorithms lists them"
		}
		o.fault("unknown", msg, "type")
	}
}

// checkReady finds out where the algorithm can run. That it can somewhere is
// enough here: which of its executors a job goes to may depend on the job's
// size.
func (o *order) checkReady() {
	executors := o.service.router.Executors(o.algorithm, o.by.routed())
	for _, executor := range executors {
		if msg := o.service.router.Unready(o.algorithm, executor); msg != "" {
			if o.unready == nil {
				o.unready = map[string]fault.Field{}
			}
			o.unready[executor] = fault.Field{Type: "not_ready", Msg: msg}
		}
	}
	if len(o.unready) == len(executors) {
		o.fault("not_ready", o.unready[executors[0]].Msg, "type")
	}
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
	sent       *strictjson.Value
	normalized json.RawMessage // nil where the settings are faulty
	needs      placement.Resources
	executor   string
	maxRuntime int64
	inputs     []Input
	sources    []Source
	faults     []fault.Field // paths begin below the settings
}

// rows checks the settings of every job that is asked for. loc gives the path
// of the i-th.
func (o *order) rows(ctx context.Context, all []*strictjson.Value, loc func(i int) []any) ([]row, error) {
	rows := make([]row, len(all))
	for i, settings := range all {
		if settings == nil { // told while decoding
			continue
		}
		rows[i].sent = settings
		rows[i].normalized, rows[i].faults = o.algorithm.CheckSettings(settings)
		if len(rows[i].faults) == 0 {
			rows[i].faults = o.place(&rows[i])
		}
	}
	if err := o.resolveFiles(ctx, rows); err != nil {
		return nil, err
	}
	if err := o.validate(ctx, rows); err != nil {
		return nil, err
	}
	for i, r := range rows {
		o.addBelow(loc(i), r.faults)
	}
	if len(o.faults) > 0 {
		return nil, nil
	}
	return rows, nil
}

// maxFaults bounds the answer to a batch in which every row is wrong.
const maxFaults = 1000

// addBelow adds faults whose paths begin below loc.
func (o *order) addBelow(loc []any, faults []fault.Field) {
	for _, f := range faults {
		if len(o.faults) >= maxFaults {
			return
		}
		f.Loc = slices.Concat(loc, f.Loc)
		o.faults = append(o.faults, f)
	}
}

// validate has the algorithm's own validator read the settings of the rows that
// it can judge.
func (o *order) validate(ctx context.Context, rows []row) error {
	if !o.algorithm.HasValidator() {
		return nil
	}
	var asked []algorithm.ValidatorRow
	var index []int
	for i, r := range rows {
		if !o.judgeable(r) {
			continue
		}
		question, err := o.question(r)
		if err != nil {
			return err
		}
		asked, index = append(asked, question), append(index, i)
	}
	answers, err := o.algorithm.RunValidator(ctx, o.service.options.Confine, asked)
	if err != nil {
		return err
	}
	for k, faults := range answers {
		r := &rows[index[k]]
		r.faults = mergeFaults(r.faults, faults)
	}
	return nil
}

// judgeable reports whether the validator can be asked about a row: not where
// the schema found faults, unless it is made for that, nor without a file.
func (o *order) judgeable(r row) bool {
	if r.sent == nil || len(r.faults) > 0 && !o.algorithm.ValidatesFaulty() {
		return false
	}
	for _, p := range o.algorithm.FileParameters() {
		given := r.sent.Member(p.Name)
		found := slices.ContainsFunc(r.sources, func(s Source) bool { return s.Setting == p.Name })
		if given != nil && given.Kind != strictjson.Null && !found {
			return false
		}
	}
	return true
}

// question is what the validator reads of a row: the settings as the program
// would see them or, where they are faulty, as they were sent.
func (o *order) question(r row) (algorithm.ValidatorRow, error) {
	q := algorithm.ValidatorRow{Normalized: r.normalized, Paths: algorithm.Paths{Program: o.service.options.Program, Files: map[string]string{}}}
	if q.Normalized == nil {
		q.Normalized = strictjson.AppendPlain(nil, r.sent)
	}
	for _, src := range r.sources {
		path, err := o.service.SourcePath(src)
		if err != nil {
			return q, err
		}
		q.Paths.Files[src.Setting] = path
	}
	return q, nil
}

// mergeFaults puts the validator's faults behind those of the schema. Where both
// speak of a setting, the validator knows better what to say.
func mergeFaults(schema, validator []fault.Field) []fault.Field {
	told := map[any]bool{}
	for _, f := range validator {
		if len(f.Loc) > 0 {
			told[f.Loc[0]] = true
		}
	}
	kept := slices.DeleteFunc(slices.Clone(schema), func(f fault.Field) bool { return len(f.Loc) > 0 && told[f.Loc[0]] })
	return append(kept, validator...)
}

// job makes the queued job of a row.
func (o *order) job(name string, r row) *Job {
	now := unit.At(o.service.now())
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
		MaxRuntime:   r.maxRuntime,
		CreatedAt:    now,
		Executor:     r.executor,
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
func compact(v *strictjson.Value) json.RawMessage {
	if v == nil {
		return nil
	}
	b, err := strictjson.Encode(json.RawMessage(v.Raw))
	if err != nil {
		return v.AppendCanonical(nil)
	}
	return b
}
