package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

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
	o.addBelow([]any{"body"}, []FieldError{{Loc: loc, Msg: msg, Type: kind}})
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
		short = append(short, fmt.Sprintf("%s of memory of %s", Bytes(needs.MemoryBytes), Bytes(machine.MemoryBytes)))
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
