package faults

import (
	"encoding/json"
	"fmt"

	"molrun/app/client"
)

// submit submits a job with a new name.
func (w *loadClient) submit() error {
	name, s, ok := w.newJob()
	if !ok {
		return w.readJob()
	}
	w.ledger.note(func() { w.ledger.jobs[name] = &jobFact{submission: s} })
	return w.send(s)
}

// newJob returns a random job. It reports false if this client has submitted enough jobs.
func (w *loadClient) newJob() (name string, s client.Submission, ok bool) {
	if w.jobsMade >= w.jobs {
		return "", s, false
	}
	w.jobsMade++
	name = fmt.Sprintf("%s-%d-%d", w.name, w.number, w.jobsMade)
	return name, w.job(w.rand, name), true
}

// send submits a job. Repeating it is safe, because a name always refers to the same job.
func (w *loadClient) send(s client.Submission) error {
	job, err := w.client.Submit(w.ctx, s)
	if err != nil {
		return err
	}
	w.ledger.acknowledge(func() {
		w.ledger.named(s.Name, job)
		if !sameSettings(job, s) {
			w.ledger.faults = append(w.ledger.faults, fmt.Sprintf("the response has job %s with the settings %s", s.Name, job.Settings))
		}
	})
	return nil
}

// named records the ID of the job with this name. The caller has locked the ledger.
func (l *ledger) named(name string, job *client.Job) {
	fact := l.jobs[name]
	if fact.id == "" {
		fact.id = job.ID
	}
	if fact.id != job.ID {
		l.faults = append(l.faults, fmt.Sprintf("job %s was %s and is now %s", name, fact.id, job.ID))
	}
}

// submitBatch submits a batch, which must be accepted as a whole or not at all.
func (w *loadClient) submitBatch() error {
	_, first, ok := w.newJob()
	if !ok {
		return w.readJob()
	}
	return w.submitRows(first.Name+"-batch", first.Type, func(row string) client.Submission { return w.job(w.rand, row) })
}

// submitRows submits a batch with a new name, and with jobs returned by row.
func (w *loadClient) submitRows(name, typ string, row func(name string) client.Submission) error {
	var rows []*jobFact
	for i := range max(2, w.rows) {
		rows = append(rows, &jobFact{submission: row(fmt.Sprintf("%s-%d", name, i+1))})
	}
	return w.submitWhole(name, typ, rows)
}

// submitPipeline submits a first job, some jobs that read its result, and one that starts
// after those. Clients do not cancel or delete any of them, so all must succeed.
func (w *loadClient) submitPipeline() error {
	_, s, ok := w.newJob()
	if !ok || w.kind != nil {
		return w.readJob()
	}
	name := s.Name + "-line"
	first := &jobFact{submission: diaryJob(name+"-first", 0.1, 0), kept: true}
	last := &jobFact{submission: diaryJob(name+"-last", 0, 0), kept: true}
	rows := []*jobFact{last, first}
	for i := range 4 {
		one := diaryJob(fmt.Sprintf("%s-%d", name, i+1), 0, 0)
		one = withSetting(one, "input", "job:"+first.submission.Name+"/result.txt")
		rows = append(rows, &jobFact{submission: one, kept: true, after: []string{first.submission.Name}})
		last.after = append(last.after, one.Name)
	}
	last.submission.After = last.after
	return w.submitWhole(name, "", rows)
}

// submitWhole records a batch and submits it. A pipeline as a whole has no type.
func (w *loadClient) submitWhole(name, typ string, rows []*jobFact) error {
	fact := &jobFact{submission: client.Submission{Name: name, Type: typ}, kept: typ == ""}
	w.ledger.note(func() {
		w.ledger.jobs[name] = fact
		for _, row := range rows {
			row.isRow = true
			fact.rows = append(fact.rows, row.submission.Name)
			w.ledger.jobs[row.submission.Name] = row
		}
	})
	return w.sendBatch(*fact)
}

func (w *loadClient) sendBatch(fact jobFact) error {
	name := fact.submission.Name
	batch := client.BatchSubmission{Name: name, Type: fact.submission.Type}
	w.ledger.note(func() {
		for _, row := range fact.rows {
			s := w.ledger.jobs[row].submission
			if batch.Type == "" {
				batch.Jobs = append(batch.Jobs, s)
			} else {
				batch.Settings = append(batch.Settings, json.RawMessage(s.Settings))
			}
		}
	})
	job, err := w.client.SubmitBatch(w.ctx, batch)
	if err != nil {
		return err
	}
	w.ledger.acknowledge(func() { w.ledger.named(name, job) })
	return nil
}

// submitAgain repeats a submission, whether or not it was acknowledged.
func (w *loadClient) submitAgain() error {
	fact, release, ok := w.ledger.reserve(w.rand, func(f jobFact) bool { return !f.isRow })
	if !ok {
		return nil
	}
	defer release()
	if fact.rows != nil {
		return w.sendBatch(fact)
	}
	return w.send(fact.submission)
}

// submitOther submits different work under an existing name.
func (w *loadClient) submitOther() error {
	fact, release, ok := w.ledger.reserve(w.rand, func(f jobFact) bool { return f.id != "" })
	if !ok {
		return nil
	}
	defer release()
	other := diaryJob("another", 1, 1)
	other.Name = fact.submission.Name
	job, err := w.client.Submit(w.ctx, other)
	if err == nil {
		w.ledger.faultf("job %s (%s) was returned for different work", job.ID, other.Name)
	}
	return except(err, "JOB_ALREADY_EXISTS")
}
