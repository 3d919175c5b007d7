package web

import (
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/apikey"
	"molrun/app/audit"
	"molrun/app/fault"
	"molrun/app/naming"
	"molrun/app/unit"
	"molrun/web/edge"
	"molrun/web/redact"
	"molrun/web/respond"
)

// audited names the actions of the audit log: whatever changes something,
// makes a link, or manages keys. Reads are only in the access log.
var audited = map[string]string{
	"POST /submit-job":              "job.submit",
	"POST /submit-batch":            "batch.submit",
	"POST /jobs/:jobName/cancel":    "job.cancel",
	"POST /jobs/:jobName/retry":     "job.retry",
	"DELETE /jobs/:jobName":         "job.delete",
	"PATCH /jobs/:jobName":          "job.label",
	"POST /jobs/:jobName/pin":       "job.pin",
	"DELETE /jobs/:jobName/pin":     "job.unpin",
	"POST /result":                  "result.link",
	"PUT /upload/:filename":         "upload.create",
	"POST /upload/:fileId/complete": "upload.complete",
	"DELETE /files/:fileId":         "file.delete",

	"POST /admin/drain":   "service.drain",
	"DELETE /admin/drain": "service.resume",

	"POST /control/drain":                 "service.drain",
	"DELETE /control/drain":               "service.resume",
	"POST /control/keys":                  "key.create",
	"DELETE /control/keys/:id":            "key.delete",
	"POST /control/keys/:id/disable":      "key.disable",
	"POST /control/keys/:id/enable":       "key.enable",
	"POST /control/keys/:id/revoke-links": "key.revoke-links",
	"POST /control/keys/:id/rotate":       "key.rotate",
	"POST /control/prune":                 "prune",
	"POST /control/secret/rotate":         "secret.rotate",
}

// What handlers leave in gin's context for the audit log.
const (
	objectKey = "object"
	dryRunKey = "dry run"
)

// failuresPerSecond bounds how many failed authentications from one address are
// audited, so that guessing keys does not fill the log.
const failuresPerSecond = 5

// auditor writes the audit log. A nil auditor writes nothing.
type auditor struct {
	sink            func(audit.Entry)
	now             func() time.Time
	failed          *edge.RateLimiter // all failed authentications
	failedByAddress *edge.RateLimiter
}

func newAuditor(sink func(audit.Entry), now func() time.Time) *auditor {
	if sink == nil {
		return nil
	}
	return &auditor{sink, now, edge.NewRateLimiter(4*failuresPerSecond, now), edge.NewRateLimiter(failuresPerSecond, now)}
}

// auditObject names the object of a request whose path does not name it.
// Invalid names are left out, because they may hold anything.
func auditObject(c *gin.Context, name string) {
	if naming.Check(name) == "" {
		c.Set(objectKey, name)
	}
}

// auditNothing keeps a dry run out of the audit log.
func auditNothing(c *gin.Context) { c.Set(dryRunKey, true) }

// add writes how a request ended, if its action is audited.
func (a *auditor) add(c *gin.Context, remote string) {
	if a == nil || c.GetBool(dryRunKey) {
		return
	}
	e := audit.Entry{
		Time: unit.At(a.now()), Request: c.Writer.Header().Get(respond.RequestID),
		Action: audited[c.Request.Method+" "+c.FullPath()], Object: objectOf(c),
		Result: resultOf(c), Remote: remote,
	}
	if by, known := c.Get(callerKey); known {
		e.Key, e.Organization = by.(app.Caller).KeyID, by.(app.Caller).Organization
	}
	switch e.Result {
	case string(fault.Unauthorized):
		if !a.failed.Allow("") || !a.failedByAddress.Allow(remote) {
			return
		}
		e.Action, e.Object, e.Key = "authenticate", "", attemptedKey(c)
	case string(fault.RateLimited), string(fault.Unavailable):
		return // nothing was done, and there may be very many
	}
	if e.Action != "" {
		a.sink(e)
	}
}

func objectOf(c *gin.Context) string {
	if name := c.GetString(objectKey); name != "" {
		return name
	}
	for _, p := range c.Params {
		if name, err := url.PathUnescape(p.Value); err == nil && naming.Check(name) == "" {
			return redact.ForLog(name)
		}
	}
	return ""
}

// resultOf returns ok or the code of the error.
func resultOf(c *gin.Context) string {
	switch code := c.GetString(codeKey); {
	case code != "":
		return code
	case c.Writer.Status() >= 500:
		return string(fault.Internal) // a panic
	}
	return "ok"
}

// attemptedKey returns the id within a refused key, if it has the form of one.
// The rest of the key stays out of the log.
func attemptedKey(c *gin.Context) string {
	keys := c.Request.Header.Values("X-Api-Key")
	if len(keys) != 1 {
		return ""
	}
	return apikey.ID(keys[0])
}
