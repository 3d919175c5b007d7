package storage

import (
	"molrun/app"
	"molrun/storage/kv"
)

// Statuses counts the jobs of each status, of a user or, with email "", of the
// whole organization. It reads four sums.
func (t tx) Statuses(organization, email string) (counts app.Counts, err error) {
	bucket, k := sumStatusesOrganization, make(kv.Key, 0, 64).Text(organization)
	if email != "" {
		bucket, k = sumStatusesUser, k.Text(email)
	}
	for _, status := range app.Statuses {
		sum, err := sumAt(t.Tx, bucket, k.Letter(statusLetter(status)))
		if err != nil {
			return app.Counts{}, err
		}
		*counts.Of(status) = sum.Jobs
	}
	return counts, nil
}

const (
	sumStatusesOrganization = "jobs.statuses"
	sumStatusesUser         = "jobs.statuses.user"
)

// statusesOfOrganization: organization, status; no subjobs.
func statusesOfOrganization(j *app.Job) (kv.Key, app.Usage) {
	if j.Private.Batch != "" {
		return nil, app.Usage{}
	}
	return make(kv.Key, 0, 32).Text(j.Organization).Letter(statusLetter(j.Status)), app.Usage{Jobs: 1}
}

// statusesOfUser: organization, user, status; no subjobs.
func statusesOfUser(j *app.Job) (kv.Key, app.Usage) {
	if j.Private.Batch != "" {
		return nil, app.Usage{}
	}
	return make(kv.Key, 0, 64).Text(j.Organization).Text(j.Email).Letter(statusLetter(j.Status)), app.Usage{Jobs: 1}
}
