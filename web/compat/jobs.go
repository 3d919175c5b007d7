package compat

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"molrun/app/client"
)

// words maps job states to the words that this mount's clients expect.
var words = map[string]string{"QUEUED": "In Queue", "RUNNING": "Running", "COMPLETED": "Complete", "FAILED": "Stopped"}

// The maximum page size, and the maximum number of names in a search.
const (
	maxPage  = 1000
	maxNames = 1000
)

// page is the maximum page size of the API.
const page = 100

// record is a job in the format of this mount's clients. Most members appear under two
// names.
type record map[string]any

// recordOf translates a job. inBatches says whether the record of a job in a batch names
// the batch.
func recordOf(j *client.Job, inBatches bool) record {
	settings := string(j.Settings)
	typ := j.Type
	r := record{
		"JobName": j.Name, "jobName": j.Name, "JobStatus": words[j.Status], "status": words[j.Status], "state": j.Status,
		"Created": j.CreatedAt, "User": j.Email,
	}
	if j.Counts != nil {
		r["batchStatus"], r["statuses"] = words[j.Status], counts(j.Counts)
		settings, typ = j.Type, "batch"
	}
	r["Type"], r["type"], r["Settings"] = typ, typ, settings
	if !j.StartedAt.IsZero() {
		r["Started"] = j.StartedAt
	}
	if !j.CompletedAt.IsZero() {
		r["Completed"] = j.CompletedAt
	}
	if m := j.Metrics; m != nil {
		r["WeightedHours"] = m.RunSeconds / 3600
		if len(m.Results) > 0 {
			r["Score"] = string(m.Results)
		}
	}
	if inBatches && j.Batch != "" {
		r["Batch"] = j.Batch
	}
	return r
}

func counts(by map[string]int) map[string]int {
	in := map[string]int{}
	for state, n := range by {
		in[words[state]] = n
	}
	return in
}

// jobs handles GET jobs: one job, in every form that clients expect, or a list.
func (c *call) jobs() (any, error) {
	q := c.r.URL.Query()
	if name := q.Get("jobName"); name != "" {
		return c.jobAsList(name)
	}
	limit := 50
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, rejectf("limit must be a number from 1 to %d", maxPage)
		}
		limit = min(n, maxPage)
	}
	ask := url.Values{"statuses": {"true"}}
	for _, name := range []string{"startKey", "jobEmail", "batch"} {
		if q.Get(name) != "" {
			ask.Set(name, q.Get(name))
		}
	}
	for _, name := range []string{"organization", "includeSubjobs"} {
		if c.switchOn(name) {
			ask.Set(name, "true")
		}
	}
	return c.listJobs(ask, limit)
}

// listJobs collects pages of the API until it has limit jobs.
func (c *call) listJobs(ask url.Values, limit int) (any, error) {
	inBatches := ask.Get("includeSubjobs") != "" || ask.Get("batch") != ""
	answer := map[string]any{}
	list := []record{}
	for taken := 0; ; {
		ask.Set("limit", strconv.Itoa(min(page, limit-taken)))
		a, err := c.api.Get(c.ctx(), ask, "jobs")
		if err != nil {
			return nil, err
		}
		got, err := client.Decode[struct {
			Jobs     []*client.Job  `json:"jobs"`
			StartKey string         `json:"startKey"`
			Statuses map[string]int `json:"statuses"`
		}](a)
		if err != nil {
			return nil, err
		}
		for _, j := range got.Jobs {
			list = append(list, recordOf(j, inBatches))
			for _, row := range j.Subjobs {
				row.Batch = j.Name
				list = append(list, recordOf(&row, true))
			}
		}
		if answer["statuses"] == nil {
			answer["statuses"] = counts(got.Statuses)
		}
		if taken += len(got.Jobs); got.StartKey == "" || taken >= limit {
			if got.StartKey != "" { // absent on the last page, as client loops expect
				answer["startKey"] = got.StartKey
			}
			answer["jobs"] = list
			return answer, nil
		}
		ask.Del("statuses")
		ask.Set("startKey", got.StartKey)
	}
}

// jobAsList returns a job in every form that clients expect: as the only element of a
// list, as the member "0", and as top-level members. For an unknown job, the list is
// empty.
func (c *call) jobAsList(name string) (any, error) {
	j, err := c.api.Job(c.ctx(), name)
	if isMissing(err) {
		return map[string]any{"jobs": []record{}, "statuses": map[string]int{}}, nil
	}
	if err != nil {
		return nil, err
	}
	r := recordOf(j, j.Batch != "")
	answer := map[string]any{}
	maps.Copy(answer, r)
	answer["jobs"], answer["0"] = []record{r}, r
	if j.Counts == nil {
		answer["statuses"] = map[string]int{words[j.Status]: 1}
	}
	return answer, nil
}

func isMissing(err error) bool { return statusOf(err) == http.StatusNotFound }

// statusOf returns the status of an API error, or 0 for other errors.
func statusOf(err error) int {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// search handles POST jobs/search. It returns the existing jobs with these names.
func (c *call) search() (any, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	names, err := texts(body, "jobNames", "names", "jobName")
	if err != nil {
		return nil, err
	}
	if len(names) > maxNames {
		return nil, rejectf("jobNames has %d names, but at most %d are allowed", len(names), maxNames)
	}
	list, by := []record{}, map[string]int{}
	for _, name := range names {
		j, err := c.api.Job(c.ctx(), name)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, recordOf(j, false))
		by[words[j.Status]]++
	}
	return map[string]any{"jobs": list, "statuses": by}, nil
}

// texts returns the list of strings under the first of the names that the body has.
func texts(body map[string]any, names ...string) (list []string, err error) {
	for _, name := range names {
		switch value := body[name].(type) {
		case nil:
			continue
		case string:
			return []string{value}, nil
		case []any:
			for _, each := range value {
				one, ok := each.(string)
				if !ok {
					return nil, rejectf("%s must be a list of strings", name)
				}
				list = append(list, one)
			}
			return list, nil
		default:
			return nil, rejectf("%s must be a list of strings", name)
		}
	}
	return nil, rejectf("send %s, a list of names", names[0])
}

// cancel handles POST cancelJob and cancelBatch.
func (c *call) cancel() (any, error) {
	name, err := c.named("jobName", "batchName")
	if err != nil {
		return nil, err
	}
	if _, err := c.api.Cancel(c.ctx(), name); err != nil {
		return nil, err
	}
	return map[string]string{"message": name + " is being stopped."}, nil
}

// deleteJob handles DELETE and POST delete-job, whose body names the job.
func (c *call) deleteJob() (any, error) {
	name, err := c.named("jobName", "batchName")
	if err != nil {
		return nil, err
	}
	if err := c.api.Delete(c.ctx(), name); err != nil {
		return nil, err
	}
	return map[string]string{"message": name + " was deleted."}, nil
}

// named reads a job name from the body or the query.
func (c *call) named(names ...string) (string, error) {
	body, err := c.body()
	if err != nil {
		return "", err
	}
	name := c.member(body, names...)
	if name == "" {
		return "", rejectf("send %s, the name of a job", names[0])
	}
	return name, nil
}

// object returns an object member of a body; an absent member is an empty object.
func object(body map[string]any, name string) (map[string]any, error) {
	switch value := body[name].(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return value, nil
	}
	return nil, rejectf("%s must be an object, such as {\"sequence\": \"MKT\"}", name)
}
