package compat

import (
	"fmt"
	"maps"

	"molrun/app/base/fault"
	"molrun/app/client"
)

// labels are the members of a submission that become tags.
var labels = []string{"jobEmail", "projectTag", "project"}

// submission translates the body of a job or batch submission, without its settings.
func submission(body map[string]any) map[string]any {
	out := maps.Clone(body)
	delete(out, "settings")
	tags, _ := out["tags"].(map[string]any)
	for _, name := range labels {
		value, given := out[name]
		delete(out, name)
		if text, ok := value.(string); given && ok && text != "" {
			if tags == nil {
				tags = map[string]any{}
			}
			tags[name] = text
		}
	}
	if tags != nil {
		out["tags"] = tags
	}
	return out
}

// submit handles POST submit-job with a text response, as the hosted service does.
func (c *call) submit() (any, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	settings, err := object(body, "settings")
	if err != nil {
		return nil, err
	}
	send, files := submission(body), c.filesOf(body)
	if send["settings"], err = files.translate(settings); err != nil {
		return nil, err
	}
	if _, err := c.api.Post(c.ctx(), send, "submit-job"); err != nil {
		return nil, files.explain(err)
	}
	return text(fmt.Sprint(body["jobName"]) + " submitted to queue."), nil
}

// verdict is the validation result of one job.
type verdict struct {
	Index        *int           `json:"index,omitempty"` // of a job in a list
	JobName      string         `json:"job_name,omitempty"`
	Valid        bool           `json:"valid"`
	Error        string         `json:"error,omitempty"`
	Normalized   map[string]any `json:"normalized,omitempty"`
	Missing      []string       `json:"missing_fields"`
	Unrecognized []string       `json:"unrecognized_settings"`
}

// validate handles POST validate-job, for one job or for each element of a list of
// settings.
func (c *call) validate() (any, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	files := c.filesOf(body)
	rows, several := body["settings"].([]any)
	if !several {
		settings, err := object(body, "settings")
		if err != nil {
			return nil, err
		}
		return c.validateJob(body, files, fmt.Sprint(body["jobName"]), settings)
	}
	if len(rows) > maxNames {
		return nil, rejectf("settings has %d items, but at most %d can be checked at a time", len(rows), maxNames)
	}
	names, _ := body["jobNames"].([]any)
	all := struct {
		Valid   bool       `json:"valid"`
		Results []*verdict `json:"results"`
		Name    any        `json:"job_name,omitempty"`
	}{Valid: true, Results: []*verdict{}, Name: body["batchName"]}
	for i, row := range rows {
		settings, ok := row.(map[string]any)
		if !ok {
			return nil, rejectf("settings[%d] must be an object", i)
		}
		name := fmt.Sprintf("row-%d", i+1)
		if i < len(names) {
			name = fmt.Sprint(names[i])
		}
		v, err := c.validateJob(body, files, name, settings)
		if err != nil {
			return nil, err
		}
		v.Index = &i
		all.Valid = all.Valid && v.Valid
		all.Results = append(all.Results, v)
	}
	return all, nil
}

func (c *call) validateJob(body map[string]any, files *files, name string, settings map[string]any) (v *verdict, err error) {
	send := submission(body)
	for _, member := range []string{"batchName", "jobNames"} {
		delete(send, member)
	}
	if send["jobName"] = name; name == "" || name == "<nil>" {
		send["jobName"] = "unnamed"
	}
	if send["settings"], err = files.translate(settings); err != nil {
		return nil, err
	}
	a, err := c.api.Post(c.ctx(), send, "validate-job")
	if err != nil {
		return nil, err
	}
	said, err := client.Decode[struct {
		Valid      bool           `json:"valid"`
		Normalized map[string]any `json:"normalized"`
		Detail     []fault.Field  `json:"detail"`
	}](a)
	if err != nil {
		return nil, err
	}
	v = &verdict{JobName: name, Valid: said.Valid, Normalized: said.Normalized, Missing: []string{}, Unrecognized: []string{}}
	for i, f := range said.Detail {
		said.Detail[i] = files.explainOne(f)
		if last, ok := f.Loc[len(f.Loc)-1].(string); ok && len(f.Loc) > 2 {
			switch f.Type {
			case "missing":
				v.Missing = append(v.Missing, last)
			case "unknown":
				v.Unrecognized = append(v.Unrecognized, last)
			}
		}
	}
	if !v.Valid {
		v.Error = sentences(said.Detail)
	}
	return v, nil
}

// submitBatch handles POST submit-batch.
func (c *call) submitBatch() (any, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	rows, ok := body["settings"].([]any)
	if !ok || body["jobs"] != nil {
		return nil, rejectf("settings must be a list with the settings of each job, and jobNames one with their names; jobs is not supported here")
	}
	send, files := submission(body), c.filesOf(body)
	out := make([]map[string]any, len(rows))
	for i, row := range rows {
		settings, ok := row.(map[string]any)
		if !ok {
			return nil, rejectf("settings[%d] must be an object", i)
		}
		if out[i], err = files.translate(settings); err != nil {
			return nil, err
		}
	}
	send["settings"] = out
	if _, err := c.api.Post(c.ctx(), send, "submit-batch"); err != nil {
		return nil, files.explain(err)
	}
	names, _ := body["jobNames"].([]any)
	if names == nil {
		for i := range rows {
			names = append(names, fmt.Sprintf("%v-%d", body["batchName"], i+1))
		}
	}
	return map[string]any{
		"batchName": body["batchName"], "jobs": names,
		"message": fmt.Sprintf("%v submitted to queue with %d jobs.", body["batchName"], len(rows)),
	}, nil
}
