package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/base/digest"
	"molrun/app/base/fasta"
	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// A setting can have another job make an input file: see [parameters.job] of an algorithm
// file. Such a job is named after its work so that an existing identical job is reused.
// Otherwise it is queued in the transaction that queues the job that reads the file.

// MakerSite is the site's configuration for jobs of one type that make files for others.
type MakerSite struct {
	Settings map[string]any // additional settings, which do not affect results
	Data     func() string  // identifies the site data that results depend on; nil means none
}

// WorkName names a job after its work: its type, its settings without files in plain
// form, the digests of its files, and the site data.
func WorkName(typ, data string, settings []byte, digests ...string) string {
	parts := [][]byte{[]byte(hashVersion), []byte("work"), []byte(typ), []byte(data), settings}
	for _, d := range digests {
		parts = append(parts, []byte(d))
	}
	return typ + "-" + digest.Parts(parts...)[:32]
}

// SequencesDigest returns the digest, for WorkName, of a file of sequences, ignoring
// their names.
func SequencesDigest(letters []string) string {
	return digest.Parts([]byte(strings.Join(letters, "\n")))
}

// maker is a job that makes files for others.
type maker struct {
	name      string
	id        JobID // "" until it is found or planned
	completed bool  // whether it was COMPLETED when found
	algorithm *algorithm.File
	settings  *strictjson.Value
	job       *Job // to be queued; nil if it exists already
}

// madeFile is an input of a row that another job makes.
type madeFile struct {
	parameter algorithm.Parameter
	by        *maker
}

// at returns the location in the row that requests the file.
func (f *madeFile) at() []any { return []any{f.parameter.Maker.RequestedBy} }

func (f *madeFile) reference() algorithm.FileReference {
	return algorithm.FileReference{Loc: f.at(), Text: "job:" + f.by.name + "/@" + f.parameter.Maker.Output}
}

// Limits on an input file whose content determines the name of the job that makes another
// file.
const (
	maxNamingFile    = 4 << 20
	maxNamingRecords = 10_000
)

// findMakers finds the jobs that make files for the rows. Existing files become inputs;
// awaitMakers adds the others once the other settings have been validated.
func (p *plan) findMakers(ctx context.Context, rows []row) error {
	made := slices.DeleteFunc(p.algorithm.Parameters.Files(), func(f algorithm.Parameter) bool { return f.Maker == nil })
	if len(made) == 0 {
		return nil
	}
	for i := range rows {
		if rows[i].settings == nil || len(rows[i].faults) > 0 {
			continue
		}
		for _, parameter := range made {
			if !parameter.Maker.Requested(rows[i].settings.Members) {
				continue
			}
			by, wrong, err := p.makerOf(&rows[i], parameter)
			switch {
			case err != nil:
				return err
			case by == nil:
				rows[i].faults = append(rows[i].faults, wrong)
			default:
				rows[i].made = append(rows[i].made, madeFile{parameter, by})
			}
		}
	}
	if len(p.makers) == 0 {
		return nil
	}
	return p.store.View(ctx, func(tx Tx) error {
		for _, m := range p.makers {
			if err := p.find(tx, m); err != nil {
				return err
			}
		}
		return p.addMadeInputs(tx, rows, func(m *maker) bool { return m.completed })
	})
}

// makerOf returns the job that makes a file for a row, or a validation error.
func (p *plan) makerOf(r *row, parameter algorithm.Parameter) (by *maker, wrong fault.Field, err error) {
	want := parameter.Maker
	asks := func(msg string) (*maker, fault.Field, error) {
		return nil, fault.Field{Loc: []any{want.RequestedBy}, Type: "value", Msg: msg}, nil
	}
	if v := r.settings.Member(parameter.Name); v != nil && v.Kind != strictjson.Null {
		return nil, fault.Field{Loc: []any{parameter.Name}, Type: "value", Msg: fmt.Sprintf("can't be combined with %s, for which a job of type %s makes the file: remove one of the two", want.RequestedBy, want.Type)}, nil
	}
	if p.forMakers {
		return asks(fmt.Sprintf("needs a job of type %s, which is created automatically only for jobs that you submit yourself: submit that job first", want.Type))
	}
	a, ok := p.catalogue.Find(want.Type, "")
	if !ok {
		return asks(fmt.Sprintf("needs a job of type %s, which is not available on this server", want.Type))
	}
	members := slices.Clone(want.Settings)
	plain := strictjson.AppendPlain(nil, &strictjson.Value{Kind: strictjson.Object, Members: members})
	var digests []string
	for _, f := range want.Files {
		text, sum, msg, err := p.digestFor(r, f.From, a.Parameters.Named(f.Setting))
		switch {
		case err != nil:
			return nil, wrong, err
		case msg != "":
			return nil, fault.Field{Loc: []any{f.From}, Type: "file", Msg: msg}, nil
		}
		digests = append(digests, sum)
		members = append(members, strictjson.Member{Name: f.Setting, Value: &strictjson.Value{Kind: strictjson.String, Text: text}})
	}
	name := WorkName(want.Type, p.siteData(want.Type), plain, digests...)
	if p.makers[name] == nil {
		settings, err := settingsOf(members, p.options.Makers[want.Type].Settings)
		if err != nil {
			return nil, wrong, err
		}
		p.makers[name] = &maker{name: name, algorithm: a, settings: settings}
	}
	return p.makers[name], wrong, nil
}

// siteData returns the identifier of the site data for a type, read once for all rows.
func (p *plan) siteData(typ string) string {
	data, known := p.data[typ]
	if read := p.options.Makers[typ].Data; !known && read != nil {
		data = read()
		p.data[typ] = data
	}
	return data
}

// settingsOf returns a settings object that includes the site's settings.
func settingsOf(members []strictjson.Member, more map[string]any) (*strictjson.Value, error) {
	for _, name := range slices.Sorted(maps.Keys(more)) {
		text, err := json.Marshal(more[name])
		if err != nil {
			return nil, fmt.Errorf("setting %s of the site: %w", name, err)
		}
		v, err := strictjson.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("setting %s of the site: %w", name, err)
		}
		members = append(members, strictjson.Member{Name: name, Value: v})
	}
	return strictjson.Parse(strictjson.AppendPlainMembers(nil, members))
}

// digestFor returns a row's reference to the file in setting name, and the digest of the
// content that the making job reads with its parameter reads. If the file can't be used,
// msg says why.
func (p *plan) digestFor(r *row, name string, reads *algorithm.Parameter) (text, sum, msg string, err error) {
	i := slices.IndexFunc(r.references, func(ref Reference) bool { return ref.Setting == name })
	if i < 0 {
		return "", "", "is required by the job that makes another input", nil
	}
	ref := r.references[i]
	switch {
	case ref.Pending:
		return "", "", fmt.Sprintf("is created by job %q, which has not finished: submit this job when that one is COMPLETED", r.inputs[i].Job), nil
	case ref.Size > maxNamingFile:
		return "", "", fmt.Sprintf("has more than %s", unit.Bytes(maxNamingFile)), nil
	}
	text = p.algorithm.Parameters.Named(name).References(r.sent)[0].Text
	if reads == nil || !reads.HoldsSequences() {
		return text, r.inputs[i].SHA256, "", nil
	}
	path, err := p.referencePath(ref)
	if err != nil {
		return "", "", "", err
	}
	if sum = p.digests[path]; sum != "" {
		return text, sum, "", nil
	}
	held, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", "was just deleted; upload it again", nil
	}
	if err != nil {
		return "", "", "", fmt.Errorf("read the file of setting %s: %w", name, err)
	}
	records := fasta.Parse(plaintext.Unix(held), maxNamingRecords)
	if len(records) > maxNamingRecords {
		return "", "", fmt.Sprintf("has more than %d sequences", maxNamingRecords), nil
	}
	letters := make([]string, len(records))
	for k, record := range records {
		letters[k] = record.Letters
	}
	p.digests[path] = SequencesDigest(letters)
	return text, p.digests[path], "", nil
}

// find looks for a job that does the work of a maker. If a job with the name has failed
// or is being stopped, it tries the next numbered name.
func (p *plan) find(tx Tx, m *maker) error {
	if m.id != "" {
		return nil // already found, for rows of another type in the pipeline
	}
	first := m.name
	for n := 2; ; n++ {
		j, err := tx.JobNamed(p.by.Organization, m.name)
		switch {
		case errors.Is(err, fault.NotFound):
			return nil
		case err != nil:
			return err
		case j.makesFor(m):
			m.id, m.completed = j.ID, j.Status == Completed
			return nil
		}
		m.name = fmt.Sprintf("%s-%d", first, n)
	}
}

// makesFor reports whether a job with a maker's name can be used as that maker.
func (j *Job) makesFor(m *maker) bool {
	return j.Type == m.algorithm.Type && !j.IsBatch() && j.Status != Failed && !j.Private.Stop
}

// addMadeInputs adds the files of the makers selected by some to the inputs of the rows.
func (p *plan) addMadeInputs(tx Tx, rows []row, some func(*maker) bool) error {
	for i := range rows {
		r := &rows[i]
		var rest []madeFile
		for _, f := range r.made {
			if !some(f.by) {
				rest = append(rest, f)
				continue
			}
			before := len(r.references)
			if err := p.resolveParameter(tx, r, f.parameter, f.reference()); err != nil {
				return err
			}
			for _, ref := range r.references[before:] {
				r.facts.AddFile(ref.Setting, ref.Size, ref.Pending)
			}
		}
		r.made = rest
	}
	return nil
}

// awaitMakers makes the rows wait for the jobs that will make their files, and plans the
// missing jobs.
func (p *plan) awaitMakers(ctx context.Context, rows []row) error {
	if len(p.makers) == 0 {
		return nil
	}
	missing := map[*algorithm.File][]*maker{}
	for i := range rows {
		if len(rows[i].faults) > 0 {
			rows[i].made = nil
		}
		for _, f := range rows[i].made {
			if of := missing[f.by.algorithm]; f.by.id == "" && !slices.Contains(of, f.by) {
				missing[f.by.algorithm] = append(of, f.by)
			}
		}
	}
	wrong := map[*maker][]fault.Field{}
	for a, makers := range missing {
		if err := p.planMakers(ctx, a, makers, wrong); err != nil {
			return err
		}
	}
	for i := range rows {
		for _, f := range rows[i].made {
			for _, w := range wrong[f.by] {
				rows[i].faults = append(rows[i].faults, f.placed(w))
			}
		}
	}
	return p.store.View(ctx, func(tx Tx) error {
		return p.addMadeInputs(tx, rows, func(m *maker) bool { return m.id != "" })
	})
}

// planMakers plans jobs of one algorithm as if the caller had submitted them, and records
// the errors of each in wrong.
func (p *plan) planMakers(ctx context.Context, a *algorithm.File, makers []*maker, wrong map[*maker][]fault.Field) error {
	priority := p.priority
	if p.faulty("priority") {
		priority = 0
	}
	plan := newPlan(p.core, p.by, a.Type, a.Version, priority, 0, nil)
	plan.forMakers = true
	common := plan.faults
	settings := make([]*strictjson.Value, len(makers))
	for k, m := range makers {
		settings[k] = m.settings
		for _, f := range common {
			wrong[m] = append(wrong[m], fault.Field{Loc: []any{}, Type: f.Type, Msg: f.Msg})
		}
	}
	if len(common) > 0 {
		return nil
	}
	rows, err := plan.rows(ctx, settings, func(k int) []any { return []any{k} })
	if err != nil {
		return err
	}
	for _, f := range plan.faults {
		k, _ := f.Loc[0].(int)
		f.Loc = f.Loc[1:]
		wrong[makers[k]] = append(wrong[makers[k]], f)
	}
	for k, r := range rows {
		m := makers[k]
		m.id = plan.newJobID()
		m.job = plan.job(m.id, m.name, r)
		m.job.Private.Meaning = meaningHash("job", plan.algorithm, r.normalized)
		if p.siblings == nil {
			p.siblings = map[string]sibling{}
		}
		p.siblings[m.name] = sibling{m.id, plan.algorithm}
	}
	return nil
}

// placed converts an error of the job that makes the file to an error of the row.
func (f *madeFile) placed(w fault.Field) fault.Field {
	if len(w.Loc) > 0 {
		for _, given := range f.parameter.Maker.Files {
			if given.Setting == w.Loc[0] {
				w.Loc = []any{given.From}
				return w
			}
		}
		w.Msg = fmt.Sprintf("its setting %v %s", w.Loc[0], w.Msg)
	}
	w.Loc, w.Msg = f.at(), fmt.Sprintf("needs a job of type %s, but %s", f.parameter.Maker.Type, w.Msg)
	return w
}

// plannedMakers returns the jobs that make files for a plan's jobs, sorted by name.
func plannedMakers(all map[string]*maker) (used []*maker) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].id != "" {
			used = append(used, all[name])
		}
	}
	return used
}

// errMakerChanged means that a job that makes a file was created, deleted or failed since
// it was looked up.
var errMakerChanged = errors.New("a job that makes a file has changed")

// putMakers stores the new makers of a job after checking that none has changed since it
// was planned.
func putMakers(tx Tx, reader *Job, makers []*maker, encoded []EncodedJob) error {
	for _, m := range makers {
		j, err := tx.JobNamed(reader.Organization, m.name)
		switch {
		case m.name == reader.Name:
			return fault.Errorf(fault.JobAlreadyExists, "%q is already the name of the job that makes an input of this one; choose another name", m.name)
		case errors.Is(err, fault.NotFound) && m.job != nil:
		case errors.Is(err, fault.NotFound):
			return errMakerChanged
		case err != nil:
			return err
		case j.ID != m.id || !j.makesFor(m):
			return errMakerChanged
		}
	}
	for _, e := range encoded {
		if err := tx.PutEncoded(e); err != nil {
			return err
		}
		if err := referencesRemain(tx, e.Job); err != nil {
			return err
		}
	}
	return nil
}
