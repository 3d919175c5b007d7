package web

import (
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/app/base/naming"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
	"molrun/app/job/audit"
	"molrun/web/respond"
)

// audited maps routes to audited actions: everything that changes data, creates links or
// manages keys. Reads appear only in the access log.
var audited = map[string]string{
	"POST /submit-job":              "job.submit",
	"POST /submit-batch":            "batch.submit",
	"POST /jobs/:jobName/cancel":    "job.cancel",
	"POST /jobs/:jobName/retry":     "job.retry",
	"DELETE /jobs/:jobName":         "job.delete",
	"PATCH /jobs/:jobName":          "job.label",
	"POST /jobs/:jobName/share":     "share.create",
	"DELETE /shares/:id":            "share.revoke",
	"POST /jobs/:jobName/pin":       "job.pin",
	"DELETE /jobs/:jobName/pin":     "job.unpin",
	"POST /result":                  "result.link",
	"PUT /upload/:filename":         "upload.create",
	"POST /upload/:fileId/complete": "upload.complete",
	"POST /upload/:fileId/link":     "upload.renew",
	"DELETE /files/:fileId":         "file.delete",

	"POST /webhooks":                   "webhook.create",
	"DELETE /webhooks/:webhookId":      "webhook.delete",
	"PATCH /webhooks/:webhookId":       "webhook.change",
	"POST /webhooks/:webhookId/rotate": "webhook.rotate",
	"POST /webhooks/:webhookId/test":   "webhook.test",

	"POST /session":   "session.begin",
	"DELETE /session": "session.end",

	"POST /control/sign-in": "session.invite",

	"POST /admin/drain":   "service.drain",
	"DELETE /admin/drain": "service.resume",

	"POST /control/algorithms/reload":        "algorithms.reload",
	"POST /control/drain":                    "service.drain",
	"DELETE /control/drain":                  "service.resume",
	"POST /admin/keys":                       "key.create",
	"DELETE /admin/keys/:keyId":              "key.delete",
	"PATCH /admin/keys/:keyId":               "key.change",
	"POST /admin/keys/:keyId/disable":        "key.disable",
	"POST /admin/keys/:keyId/enable":         "key.enable",
	"POST /admin/keys/:keyId/revoke-links":   "key.revoke-links",
	"POST /admin/keys/:keyId/rotate":         "key.rotate",
	"PATCH /admin/users/:email":              "user.change",
	"DELETE /admin/users/:email":             "user.delete",
	"POST /control/keys":                     "key.create",
	"DELETE /control/keys/:keyId":            "key.delete",
	"PATCH /control/keys/:keyId":             "key.change",
	"POST /control/keys/:keyId/disable":      "key.disable",
	"POST /control/keys/:keyId/enable":       "key.enable",
	"POST /control/keys/:keyId/revoke-links": "key.revoke-links",
	"POST /control/keys/:keyId/rotate":       "key.rotate",
	"PATCH /control/users/:email":            "user.change",
	"DELETE /control/users/:email":           "user.delete",
	"POST /keys":                             "key.create",
	"DELETE /keys/:keyId":                    "key.delete",

	"POST /admin/prune":               "prune",
	"POST /control/prune":             "prune",
	"POST /control/secret/rotate":     "secret.rotate",
	"POST /control/secret/rotate-now": "secret.rotate-now",
}

// Values in gin's context for the audit log.
const (
	objectKey = "object"
	dryRunKey = "dry run"
	// attemptKey holds the ID of a key that was not sent in a header.
	attemptKey = "attempted key"
)

// failuresPerSecond is the maximum number of failed authentications per address and
// second in the audit log, so that guessing keys does not fill it.
const failuresPerSecond = 5

// auditor writes the audit log. A nil auditor writes nothing.
type auditor struct {
	sink            func(audit.Entry)
	now             func() time.Time
	failed          *limit.Rates // limits all failed authentications together
	failedByAddress *limit.Rates
}

func newAuditor(sink func(audit.Entry), now func() time.Time) *auditor {
	if sink == nil {
		return nil
	}
	return &auditor{sink, now, limit.NewRates(4*failuresPerSecond, now), limit.NewRates(failuresPerSecond, now)}
}

// auditObject sets the object of a request whose path does not name it. It ignores
// invalid names, which could contain anything.
func auditObject(c *gin.Context, name string) {
	if naming.CheckName(name) == "" {
		c.Set(objectKey, name)
	}
}

// auditNothing keeps a dry run out of the audit log.
func auditNothing(c *gin.Context) { c.Set(dryRunKey, true) }

// auditRequest writes the outcome of a request, if its action is audited.
func (a *auditor) auditRequest(c *gin.Context, remote string) {
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
		return // had no effect, and could be very frequent
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
		if name, err := url.PathUnescape(p.Value); err == nil && naming.CheckName(name) == "" {
			return respond.Redact(name)
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
		return string(fault.Internal) // the handler panicked
	}
	return "ok"
}

// attemptedKey returns the ID in a rejected key, if the key is well-formed. The rest of
// the key stays out of the log.
func attemptedKey(c *gin.Context) string {
	if id := c.GetString(attemptKey); id != "" {
		return id
	}
	keys := c.Request.Header.Values("X-Api-Key")
	if len(keys) != 1 {
		return ""
	}
	return apikey.ID(keys[0])
}
