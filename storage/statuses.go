package storage

import "molrun/app"

// How many jobs of each status there are is counted with every change, so that
// nobody ever counts them. Rows count in their batch.
const (
	sumStatusesOrganization = "jobs.statuses"
	sumStatusesUser         = "jobs.statuses.user"
)

// statusesOfOrganization: organization, status; no subjobs.
func statusesOfOrganization(j *app.Job) (key, app.Usage) {
	if j.Private.Batch != "" {
		return nil, app.Usage{}
	}
	return make(key, 0, 32).text(j.Organization).letter(statusLetter(j.Status)), app.Usage{Jobs: 1}
}

// statusesOfUser: organization, user, status; no subjobs.
func statusesOfUser(j *app.Job) (key, app.Usage) {
	if j.Private.Batch != "" {
		return nil, app.Usage{}
	}
	return make(key, 0, 64).text(j.Organization).text(j.Email).letter(statusLetter(j.Status)), app.Usage{Jobs: 1}
}

// Statuses counts the jobs of each status, of a user or, with email "", of the
// whole organization. It reads four numbers.
func (t *tx) Statuses(organization, email string) (counts app.Counts, err error) {
	bucket, k := sumStatusesOrganization, make(key, 0, 64).text(organization)
	if email != "" {
		bucket, k = sumStatusesUser, k.text(email)
	}
	for _, status := range app.Statuses {
		sum, err := t.sumAt(bucket, k.letter(statusLetter(status)))
		if err != nil {
			return app.Counts{}, err
		}
		*counts.Of(status) = sum.Jobs
	}
	return counts, nil
}
