package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/client"
)

// filter holds the flags that select jobs, as in GET /jobs.
type filter struct {
	status, tags                                        []string
	batch, algorithm, email, search, since, until, sort string
	organization                                        bool
}

func (f *filter) addFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.status, "status", nil, "QUEUED, RUNNING, COMPLETED or FAILED; separate several by commas")
	flags.StringVar(&f.batch, "batch", "", "jobs of this batch")
	flags.StringVar(&f.algorithm, "type", "", "jobs of this algorithm")
	flags.StringVar(&f.email, "user", "", "jobs of the user with this e-mail address")
	flags.StringVar(&f.search, "search", "", "jobs with this text in name, note or tags")
	flags.StringArrayVar(&f.tags, "tag", nil, "jobs with this tag, key:value")
	flags.StringVar(&f.since, "since", "", "submitted since this date or within this time, such as 2026-11-20 or 2h")
	flags.StringVar(&f.until, "until", "", "submitted before this date or longer ago than this time")
	flags.BoolVar(&f.organization, "organization", false, "include other users' entries")
	completeFlag(c, "batch", completeJobs)
	completeFlag(c, "type", completeTypes)
	completeFlag(c, "status", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"QUEUED", "RUNNING", "COMPLETED", "FAILED"}, cobra.ShellCompDirectiveNoFileComp
	})
}

// query returns the query parameters for GET /jobs.
func (f *filter) query(now time.Time) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"batch": f.batch, "algorithm": f.algorithm, "jobEmail": f.email, "search": f.search, "sort": f.sort} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for _, status := range f.status {
		q.Add("status", status)
	}
	for _, tag := range f.tags {
		q.Add("tag", tag)
	}
	for name, text := range map[string]string{"since": f.since, "until": f.until} {
		if text != "" {
			q.Set(name, timeOrAgo(text, now))
		}
	}
	if f.organization {
		q.Set("organization", "true")
	}
	return q
}

// timeOrAgo converts a duration to the time that long ago. It returns any other text
// unchanged.
func timeOrAgo(text string, now time.Time) string {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d).UTC().Format(time.RFC3339)
	}
	return text
}

// any reports whether any filter is set.
func (f *filter) any() bool {
	return len(f.status)+len(f.tags) > 0 || cmp.Or(f.batch, f.algorithm, f.email, f.search, f.since, f.until) != ""
}

// eachPage calls do for the items of a listing (jobs or files) that the query selects,
// for at most most items; 0 means no limit. more reports whether there are further items.
func eachPage(ctx context.Context, s *session, listing string, q url.Values, most int, do func(client.Answer) error) (more bool, err error) {
	for n, next := 0, ""; ; {
		if next != "" {
			q.Set("startKey", next)
		}
		page := 100
		if most > 0 {
			page = min(page, most-n)
		}
		q.Set("limit", strconv.Itoa(page))
		a, err := s.API.Get(ctx, q, listing)
		if err != nil {
			return false, err
		}
		list, err := client.Decode[struct {
			Jobs     []json.RawMessage `json:"jobs"`
			Files    []json.RawMessage `json:"files"`
			StartKey string            `json:"startKey"`
		}](a)
		if err != nil {
			return false, err
		}
		for _, one := range append(list.Jobs, list.Files...) {
			if err := do(one); err != nil {
				return false, err
			}
			n++
		}
		if next = list.StartKey; next == "" || most > 0 && n >= most {
			return next != "", nil
		}
	}
}
