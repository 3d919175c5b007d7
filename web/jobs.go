package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/app/base/strictjson"
	"molrun/app/job/listing"
	"molrun/web/decode"
	"molrun/web/respond"
)

// jobs handles requests to list, show and change jobs.
type jobs struct {
	svc      *app.Jobs
	lists    *listing.Lists
	waiters  *limit.Budget
	stopping context.Context // canceled to end all waits
}

// list handles GET /jobs.
func (h jobs) list(c *gin.Context, by app.Caller) error {
	query, faults := decode.Query(c, readQuery)
	query.Faults = faults
	page, err := h.lists.Jobs(c.Request.Context(), by, query)
	if err != nil {
		return err
	}
	defer page.Release()
	answer := respond.Page{Noun: "jobs", Records: page.Records, StartKey: page.StartKey}
	if page.Statuses != nil {
		answer.Statuses, _ = json.Marshal(page.Statuses) // numbers can't fail to marshal
	}
	if page.Count != nil {
		answer.Count = countText(*page.Count)
	}
	c.Header("X-Event-ID", page.Event.String())
	answer.Write(c.Writer)
	return nil
}

// dependants handles GET /jobs/{jobName}/dependants.
func (h jobs) dependants(c *gin.Context, by app.Caller) error {
	name, err := decode.Request(c, func(r *decode.Reader) string { return r.Path("jobName") })
	if err != nil {
		return err
	}
	found, more, err := h.lists.DependantsOf(c.Request.Context(), by, name)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewReaders(found, more))
}

func readQuery(r *decode.Reader) listing.Query {
	q := listing.Query{
		Limit:     int(r.Integer("limit", 1, app.MaxPage, listing.DefaultPage)),
		StartKey:  r.StartKey(),
		Subjobs:   r.Flag("includeSubjobs"),
		Statuses:  r.Flag("statuses"),
		Count:     r.Flag("count"),
		Selection: readSelection(r),
	}
	sort := r.ChoiceOr(listing.SortByMetric, "sort", "createdAt", "completedAt")
	q.ByCompletion = sort == "completedAt"
	if name, found := strings.CutPrefix(sort, listing.SortByMetric); found {
		q.Metric = name
	}
	q.Ascending = r.Choice("order", "asc", "desc") == "asc"
	return q
}

func readSelection(r *decode.Reader) listing.Selection {
	s := readNames(r)
	s.Since, s.Until = r.Time("since"), r.Time("until")
	readStatusAndTags(r, &s)
	return s
}

// readFilters reads the filters that select jobs, other than submission times.
func readFilters(r *decode.Reader) listing.Selection {
	s := readNames(r)
	readStatusAndTags(r, &s)
	return s
}

func readNames(r *decode.Reader) listing.Selection {
	return listing.Selection{
		Name:              r.Text("jobName"),
		Batch:             r.Text("batch"),
		WholeOrganization: r.Flag("organization"),
		Email:             r.Text("jobEmail"),
		Algorithm:         r.Text("algorithm"),
		Search:            r.Text("search"),
	}
}

func readStatusAndTags(r *decode.Reader, s *listing.Selection) {
	s.Status, s.Tags = readStatuses(r), readTags(r)
}

func readStatuses(r *decode.Reader) (all []app.Status) {
	for _, status := range r.Choices("status", "QUEUED", "RUNNING", "COMPLETED", "FAILED") {
		all = append(all, app.Status(status))
	}
	return all
}

func readTags(r *decode.Reader) (tags []app.Tag) {
	for _, tag := range r.Texts("tag") {
		key, value, found := strings.Cut(tag, ":")
		if !found || key == "" || value == "" {
			r.Fault("value", []any{"query", "tag"}, "write a tag as key:value")
			continue
		}
		tags = append(tags, app.Tag{Key: key, Value: value})
	}
	return tags
}

// summaryView is the response to GET /jobs/summary.
type summaryView struct {
	Count    json.RawMessage        `json:"count"`
	Statuses app.Counts             `json:"statuses"`
	Types    map[string]*app.Counts `json:"types"`
	Users    map[string]*app.Counts `json:"users"`
}

// summary handles GET /jobs/summary.
func (h jobs) summary(c *gin.Context, by app.Caller) error {
	selection, faults := decode.Query(c, readSelection)
	s, err := h.lists.Summary(c.Request.Context(), by, selection, faults)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, summaryView{countText(s.Count), s.Statuses, s.Types, s.Users})
}

// countText returns a number, or a string such as "10000+" if there might be more.
func countText(n listing.Count) json.RawMessage {
	text := strconv.AppendInt(nil, int64(n.Jobs), 10)
	if n.More {
		return json.RawMessage(`"` + string(text) + `+"`)
	}
	return text
}

type jobRequest struct {
	name string
	wait time.Duration
}

// get handles GET /jobs/{jobName}, optionally waiting for the job to change.
func (h jobs) get(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) jobRequest {
		return jobRequest{r.Path("jobName"), r.Duration("wait", app.MaxWait)}
	})
	if err != nil {
		return err
	}
	if req.wait > 0 {
		leave, err := h.waiters.One(by.KeyID)
		if err != nil {
			return err
		}
		defer leave()
	}
	record, err := h.waitFor(c.Request.Context(), by, req)
	if err != nil {
		return err
	}
	respond.Record(c.Writer, record)
	return nil
}

// newWaiters limits the requests that wait for a job to change to fewer than the requests
// in flight, so that some capacity remains for others.
func newWaiters(o Options) *limit.Budget {
	most := max(1, int64(o.MaxInFlight/2))
	return &limit.Budget{
		All:        most,
		Share:      threeQuarters(most),
		ShareSpent: fault.Errorf(fault.RateLimited, "Too many requests with this API key are waiting for a change; send this one again when some have finished, or without wait."),
		Spent:      fault.Errorf(fault.Unavailable, "Too many requests are waiting for a change; send this one again in a few seconds, or without wait."),
	}
}

// waitFor returns the job once it has changed, the wait is over or the server is shutting
// down.
func (h jobs) waitFor(ctx context.Context, by app.Caller, req jobRequest) (app.Record, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.stopping, cancel)()
	record, err := h.svc.Get(waiting, by, req.name, req.wait)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return h.svc.Get(ctx, by, req.name, 0)
	}
	return record, err
}

type cancelRequest struct {
	name           string
	keepDependants bool
}

// cancel handles POST /jobs/{jobName}/cancel.
func (h jobs) cancel(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) cancelRequest {
		cascade := r.Object(decode.Optional).Member("cascade", strictjson.Bool, decode.Optional)
		return cancelRequest{r.Path("jobName"), cascade != nil && cascade.Text == "false"}
	})
	if err != nil {
		return err
	}
	cancel, failing := h.svc.CancelAlone, 0
	if !req.keepDependants {
		cancel = h.svc.Cancel
		failing, err = h.lists.FailingDependants(c.Request.Context(), by, req.name)
	}
	record, refused := cancel(c.Request.Context(), by, req.name)
	if err = cmp.Or(refused, err); err != nil {
		return err
	}
	respond.Record(c.Writer, strictjson.Append(record, "dependants", failing))
	return nil
}

// retry handles POST /jobs/{jobName}/retry.
func (h jobs) retry(c *gin.Context, by app.Caller) error { return h.change(c, by, h.svc.Retry) }

// pin handles POST /jobs/{jobName}/pin.
func (h jobs) pin(c *gin.Context, by app.Caller) error { return h.change(c, by, h.svc.Pin) }

// unpin handles DELETE /jobs/{jobName}/pin.
func (h jobs) unpin(c *gin.Context, by app.Caller) error { return h.change(c, by, h.svc.Unpin) }

// change applies do to a job and responds with its record.
func (h jobs) change(c *gin.Context, by app.Caller, do func(context.Context, app.Caller, string) (app.Record, error)) error {
	name, err := decode.Request(c, jobToChange)
	if err != nil {
		return err
	}
	record, err := do(c.Request.Context(), by, name)
	if err != nil {
		return err
	}
	respond.Record(c.Writer, record)
	return nil
}

type labelsRequest struct {
	name   string
	labels app.Labels
}

// label handles PATCH /jobs/{jobName}.
func (h jobs) label(c *gin.Context, by app.Caller) error {
	req, faults, err := decode.Lenient(c, func(r *decode.Reader) labelsRequest {
		return labelsRequest{r.Path("jobName"), readLabels(r.Object(decode.Required))}
	})
	if err != nil {
		return err
	}
	record, err := h.svc.Label(c.Request.Context(), by, req.name, req.labels, faults)
	if err != nil {
		return err
	}
	respond.Record(c.Writer, record)
	return nil
}

// delete handles DELETE /jobs/{jobName}.
func (h jobs) delete(c *gin.Context, by app.Caller) error {
	name, err := decode.Request(c, jobToChange)
	if err != nil {
		return err
	}
	if err := h.svc.Delete(c.Request.Context(), by, name); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// jobToChange reads a job name from a request without a body.
func jobToChange(r *decode.Reader) string {
	name := r.Path("jobName")
	r.NoBody()
	return name
}
