// Package job groups the use cases around the domain, which is package app: keys and
// users (apikey, access), uploads (upload), pages of jobs (listing), results (output),
// events (follow), notifications (notice, delivery), accounting (quota, usage, retention,
// status), forecasts (eta), and the audit log (audit).
//
// Records and their rules (apikey, eta, notice, quota) are imported by package app. Use
// cases import it: they are methods that take the caller and open a transaction of
// app.Store, and are independent of HTTP and bbolt.
package job
