// Package job is the room of the use cases around the domain, which is package app: keys
// and users (apikey, access), uploads (upload), pages of jobs (listing), results (output),
// events (follow), notifications (notice, delivery), accounting (quota, usage, retention,
// status), forecasts (eta), and the audit log (audit).
//
// Records and their rules (apikey, eta, notice, quota) are below package app, which
// imports them. Use cases are above it: methods that take the caller, open a transaction of
// app.Store, and know neither HTTP nor bbolt.
package job
