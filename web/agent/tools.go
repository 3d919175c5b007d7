package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app/base/naming"
	"molrun/app/client"
)

// Limits of the tools.
const (
	maxJobs    = 50
	maxRows    = 100
	maxPoints  = 200
	maxText    = 32 << 10 // bytes
	maxUpload  = 1 << 20  // bytes
	maxWait    = 300      // seconds
	maxResults = 200
)

var jobName = textual("jobName*", "Name of the job.")

// tools returns all tools.
func (s *Server) tools(spec map[string]any) []tool {
	submission, batch := mustSchema(spec, "Submission"), mustSchema(spec, "BatchSubmission")
	return []tool{
		{
			"list_algorithms", "List algorithms", "List the algorithms of this service: type, title, whether it is ready and what is missing.", reads,
			object(textual("search", "Only those with all these words.")), s.listAlgorithms,
		},
		{
			"describe_algorithm", "Describe an algorithm", "Show what an algorithm does, the JSON Schema of its settings, an example, its results and its limits.", reads,
			object(textual("type*", "Type of the algorithm."), textual("version", "Version; default: the default version of the algorithm.")), s.describeAlgorithm,
		},
		{
			"validate_job", "Check a submission", "Check a submission without queueing it. Returns every error with its location, or the settings with all defaults.", reads,
			submission, s.post("validate-job"),
		},
		{
			"estimate_job", "Estimate a submission", "Estimate how long a submission would wait and run, what resources it needs, and whether it can run at all. Nothing is queued.", reads,
			submission, s.post("estimate"),
		},
		{
			"submit_job", "Submit a job", "Queue a job. Repeating a submission with the same name returns the same job.", adds,
			submission, s.post("submit-job"),
		},
		{
			"submit_batch", "Submit a batch", "Queue many jobs atomically: a list of settings, or jobs created by fanOut.", adds,
			batch, s.post("submit-batch"),
		},
		{
			"list_jobs", "List jobs", "List your jobs, newest first.", reads,
			object(textual("status", "QUEUED, RUNNING, COMPLETED or FAILED."), textual("search", "Text in name, note or tags."), textual("batch", "Only the jobs of this batch."), whole("limit", "How many.", 1, maxJobs)), s.listJobs,
		},
		{
			"get_job", "Show a job", "Show the current state of a job: status, queue position, progress, failure, metrics.", reads,
			object(jobName), s.getJob,
		},
		{
			"wait_for_job", "Wait for a job", "Wait until a job has finished, or for some seconds, then show it. Call it again while the job runs.", reads,
			object(jobName, whole("seconds", "How long to wait at most.", 1, maxWait)), s.waitForJob,
		},
		{
			"read_log", "Read a log", "Read the end of a job's log.", reads,
			object(jobName, whole("lines", "How many lines.", 1, 1000)), s.readLog,
		},
		{
			"list_results", "List results", "List the files of a job and its views, such as series, tables and structures. incomplete means that the job is still writing them.", reads,
			object(jobName), s.listResults,
		},
		{
			"read_result_file", "Read a result file", "Read the beginning of a text file of a job.", reads,
			object(jobName, textual("path*", "Path of the file, as list_results shows it."), whole("bytes", "How many bytes.", 1, maxText)), s.readFile,
		},
		{
			"read_series", "Read a series", "Read a series of a result, downsampled to a few hundred points that preserve its extremes.", reads,
			object(jobName, textual("view*", "Name of a view of kind series."), whole("points", "How many points.", 2, maxPoints)), s.readSeries,
		},
		{
			"read_table", "Read a table", "Read the first rows of a table of a result.", reads,
			object(jobName, textual("view*", "Name of a view of kind table."), whole("rows", "How many rows.", 1, maxRows)), s.readTable,
		},
		{
			"read_batch", "Read a batch", "Read the jobs of a batch with their metrics, best first.", reads,
			object(textual("batchName*", "Name of the batch."), textual("sort", "row, or metric:NAME."), whole("rows", "How many rows.", 1, maxRows)), s.readBatch,
		},
		{
			"cancel_job", "Stop a job", "Cancel a queued or running job, or all jobs of a batch. What they have computed so far is lost.", destroys,
			object(jobName), s.cancelJob,
		},
		{
			"upload_file", "Upload a small file", "Upload a text of up to 1 MiB as a file. Settings refer to it by the fileId or the reference returned.", adds,
			object(textual("filename*", "Name of the file, with its extension."), textual("text*", "Its content.")), s.uploadFile,
		},
	}
}

// mustSchema returns a schema that every version of the API has.
func mustSchema(spec map[string]any, name string) map[string]any {
	schema, err := schemaOf(spec, name)
	if err != nil {
		return map[string]any{"type": "object", "properties": map[string]any{}}
	}
	return schema
}

// post returns a tool function that posts the arguments to route.
func (s *Server) post(route string) func(context.Context, *call) (any, error) {
	return func(ctx context.Context, c *call) (any, error) {
		a, err := s.api.Post(ctx, c.body(), route)
		return plain(a), err
	}
}

// plain returns a response as a JSON object for structured content; an empty response
// becomes {}.
func plain(a client.Answer) json.RawMessage {
	if len(a) == 0 {
		return json.RawMessage("{}")
	}
	return a
}

func (s *Server) listAlgorithms(ctx context.Context, c *call) (any, error) {
	words, err := c.text("search")
	if err != nil {
		return nil, err
	}
	all, err := s.api.Algorithms(ctx)
	if err != nil {
		return nil, err
	}
	found := []map[string]any{}
	for _, a := range all {
		text := strings.ToLower(a.Type + "\n" + a.Title + "\n" + a.Description)
		if slices.ContainsFunc(strings.Fields(strings.ToLower(words)), func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		one := map[string]any{"type": a.Type, "version": a.Version, "title": a.Title, "ready": a.Ready}
		if !a.Ready {
			one["missing"] = a.Missing
		}
		found = append(found, one)
	}
	return map[string]any{"algorithms": found}, nil
}

func (s *Server) describeAlgorithm(ctx context.Context, c *call) (any, error) {
	typ, err := c.needed("type")
	if err != nil {
		return nil, err
	}
	version, err := c.text("version")
	if err != nil {
		return nil, err
	}
	q := url.Values{}
	if version != "" {
		q.Set("version", version)
	}
	a, err := s.api.Get(ctx, q, "algorithms", typ)
	return plain(a), err
}

func (s *Server) listJobs(ctx context.Context, c *call) (any, error) {
	q := url.Values{}
	for _, name := range []string{"status", "search", "batch"} {
		value, err := c.text(name)
		if err != nil {
			return nil, err
		}
		if value != "" {
			q.Set(name, value)
		}
	}
	limit, err := c.number("limit", 20, 1, maxJobs)
	if err != nil {
		return nil, err
	}
	q.Set("limit", strconv.Itoa(limit))
	a, err := s.api.Get(ctx, q, "jobs")
	if err != nil {
		return nil, err
	}
	return shorten(a)
}

// shorten omits members of a job list that can be long.
func shorten(a client.Answer) (any, error) {
	list, err := client.Decode[struct {
		Jobs     []map[string]any `json:"jobs"`
		StartKey string           `json:"startKey"`
	}](a)
	if err != nil {
		return nil, err
	}
	for _, j := range list.Jobs {
		for _, long := range []string{"settings", "inputs", "subjobs"} {
			delete(j, long)
		}
	}
	return map[string]any{"jobs": list.Jobs, "more": list.StartKey != ""}, nil
}

func (s *Server) getJob(ctx context.Context, c *call) (any, error) {
	name, err := c.needed("jobName")
	if err != nil {
		return nil, err
	}
	a, err := s.api.Get(ctx, nil, "jobs", name)
	return plain(a), err
}

func (s *Server) waitForJob(ctx context.Context, c *call) (any, error) {
	name, err := c.needed("jobName")
	if err != nil {
		return nil, err
	}
	seconds, err := c.number("seconds", 60, 1, maxWait)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	for {
		j, err := s.api.NextJob(ctx, name, min(time.Until(until), 10*time.Second))
		if err != nil {
			return nil, err
		}
		if j.Finished() || !time.Now().Before(until) {
			return s.getJob(ctx, c)
		}
		if j.Progress != nil {
			c.progress(ctx, j.Progress.Fraction, j.Progress.Text)
		} else {
			c.progress(ctx, 0, strings.ToLower(j.Status))
		}
	}
}

func (s *Server) cancelJob(ctx context.Context, c *call) (any, error) {
	name, err := c.needed("jobName")
	if err != nil {
		return nil, err
	}
	a, err := s.api.Post(ctx, nil, "jobs", name, "cancel")
	return plain(a), err
}

func (s *Server) uploadFile(ctx context.Context, c *call) (any, error) {
	filename, err := c.needed("filename")
	if err != nil {
		return nil, err
	}
	text, err := c.needed("text")
	if err != nil {
		return nil, err
	}
	if len(text) > maxUpload {
		return nil, fmt.Errorf("text: it has %d bytes, but at most %d are allowed; upload larger files with molrun files put", len(text), maxUpload)
	}
	f, err := s.api.UploadBytes(ctx, "", filename, []byte(text))
	if err != nil {
		return nil, err
	}
	return map[string]any{"fileId": f.ID, "reference": naming.OfDigest(f.SHA256, f.Filename), "size": f.Size, "sha256": f.SHA256}, nil
}
