package msa

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"molrun/app/client"
)

// typ is the job type.
const typ = "msa"

// statuses maps job statuses to those of clients.
var statuses = map[string]string{"QUEUED": "PENDING", "RUNNING": "RUNNING", "COMPLETED": "COMPLETE"}

func (c *call) submitMSA() error  { return c.submit(false) }
func (c *call) submitPair() error { return c.submit(true) }

// submit handles POST ticket/msa and ticket/pair. It returns the job of an equal earlier
// query, or a new one. It retries a failed job.
func (c *call) submit(pairing bool) error {
	q, err := c.readQuery(pairing)
	if err != nil {
		return err
	}
	release, err := c.submitting.Take(c.ctx(), q.ticket.job)
	if err != nil {
		return err
	}
	defer release()
	// Clients disconnect after six seconds and retry, so finish the submission even then.
	c.r = c.r.WithContext(context.WithoutCancel(c.ctx()))
	job, err := c.api.Job(c.ctx(), q.ticket.job)
	switch {
	case isMissing(err):
		job, err = c.create(q)
	case err == nil && job.Type == typ && job.Status == "FAILED":
		job, err = c.api.Retry(c.ctx(), job.Name)
	}
	if err != nil {
		return err
	}
	return c.writeStatus(q.ticket, job)
}

// create uploads the query and submits its job. A repeated upload of the same name, after
// a restart, has the same contents.
func (c *call) create(q query) (*client.Job, error) {
	values, err := json.Marshal(q.settings)
	if err != nil {
		return nil, err
	}
	file, err := c.api.UploadBytes(c.ctx(), folder, q.ticket.job+".fasta", q.text())
	if err != nil {
		return nil, err
	}
	job, err := c.api.Submit(c.ctx(), client.Submission{Name: q.ticket.job, Type: typ, Settings: values})
	if err != nil {
		_ = c.api.DeleteFile(c.ctx(), file.ID) // rejected if a job uses it after all
	}
	if e := new(client.Error); errors.As(err, &e) && e.Status == http.StatusConflict { // a predictor has just submitted the same search
		return c.api.Job(c.ctx(), q.ticket.job)
	}
	return job, err
}

// ticket handles GET ticket/{ticket}.
func (c *call) ticket() error {
	t, job, err := c.findJob()
	if err != nil {
		return err
	}
	return c.writeStatus(t, job)
}

// writeStatus sends the status of a job, or why it failed.
func (c *call) writeStatus(t ticket, job *client.Job) error {
	switch {
	case job.Type != typ:
		return refuse(http.StatusConflict, "The job "+job.Name+" is of another type; delete it.")
	case job.Status == "FAILED" && job.Failure != nil:
		return refuse(http.StatusOK, "The job "+job.Name+" has failed: "+job.Failure.Message)
	case statuses[job.Status] == "":
		return refuse(http.StatusOK, "The job "+job.Name+" has failed.")
	}
	return c.send(http.StatusOK, answer{ID: t.String(), Status: statuses[job.Status]})
}

// findJob returns the job of a ticket. Clients poll forever after the status UNKNOWN, so
// an unknown ticket is an error.
func (c *call) findJob() (ticket, *client.Job, error) {
	t, ok := parseTicket(c.r.PathValue("ticket"))
	if !ok {
		return ticket{}, nil, errNoTicket
	}
	job, err := c.api.Job(c.ctx(), t.job)
	if isMissing(err) {
		err = errNoTicket
	}
	return t, job, err
}

var errNoTicket = refuse(http.StatusNotFound, "There is no such ticket, or its job was deleted; submit the query again.")

func isMissing(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}
