// Package job is the room of the use cases around the domain, which is package app: keys
// and users (apikey, access), uploads (upload), pages of jobs (listing), results (output,
// download, share), events (feed, follow), notifications (notice, notify, mail, post),
// accounting (quota, spent, usage, retention, status), forecasts (eta, estimate), the audit
// log (audit), and what it takes to run a result again (resubmit).
//
// A use case is a method that takes the caller, opens one transaction of app.Store, and
// knows neither HTTP nor bbolt. It imports algorithm, task and base.
package job
