package web

import (
	"regexp"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/apikey"
	"molrun/app/audit"
	"molrun/app/fault"
	"molrun/app/naming"
	"molrun/app/unit"
)

// audited names the actions that the audit log tells of: what changes
// something, opens something, or manages keys. Reading is in the access log.
var audited = map[string]string{
	"POST /submit-job":              "job.submit",
	"POST /submit-batch":            "batch.submit",
	"POST /jobs/:jobName/cancel":    "job.cancel",
	"POST /jobs/:jobName/retry":     "job.retry",
	"DELETE /jobs/:jobName":         "job.delete",
	"POST /jobs/:jobName/pin":       "job.pin",
	"DELETE /jobs/:jobName/pin":     "job.unpin",
	"POST /result":                  "result.link",
	"PUT /upload/:filename":         "upload.create",
	"POST /upload/:fileId/complete": "upload.complete",
	"DELETE /files/:fileId":         "file.delete",

	"POST /control/keys":             "key.create",
	"DELETE /control/keys/:id":       "key.delete",
	"POST /control/keys/:id/disable": "key.disable",
	"POST /control/keys/:id/enable":  "key.enable",
	"POST /control/keys/:id/rotate":  "key.rotate",
	"POST /control/prune":            "prune",
	"POST /control/secret/rotate":    "secret.rotate",
}

// What fail and the handlers leave in gin's context for the audit log.
const (
	codeKey   = "code"
	objectKey = "object"
	idleKey   = "idle"
)

// failedAttemptsPerSecond bounds how many failed authentications are audited,
// of one address and of all: whoever guesses must not fill the log.
const failedAttemptsPerSecond = 5

// auditor writes entries; one without a sink writes none.
type auditor struct {
	sink           func(audit.Entry)
	now            func() time.Time
	failed, failer *buckets // all failed authentications; those of an address
}

func newAuditor(sink func(audit.Entry), now func() time.Time) *auditor {
	if sink == nil {
		return nil
	}
	return &auditor{sink, now, newBuckets(4*failedAttemptsPerSecond, now), newBuckets(failedAttemptsPerSecond, now)}
}

// about names what a request is about, where its path does not say it. What
// is no name is left out: it may be anything.
func about(c *gin.Context, name string) {
	if naming.Check(name) == "" {
		c.Set(objectKey, name)
	}
}

// nothingDone keeps a request that only asks what would happen out of the
// audit log.
func nothingDone(c *gin.Context) { c.Set(idleKey, true) }

// request notes how a request ended, if it is one to be told of.
func (a *auditor) request(c *gin.Context, remote string) {
	if a == nil || c.GetBool(idleKey) {
		return
	}
	e := audit.Entry{
		Time: unit.At(a.now()), Request: c.Writer.Header().Get(requestIDHeader),
		Action: audited[c.Request.Method+" "+c.FullPath()], Object: objectOf(c),
		Result: resultOf(c), Remote: remote,
	}
	if by, known := c.Get(callerKey); known {
		e.Key, e.Organization = by.(app.Caller).KeyID, by.(app.Caller).Organization
	}
	switch e.Result {
	case string(fault.Unauthorized):
		if !a.failed.take("") || !a.failer.take(remote) {
			return
		}
		e.Action, e.Object, e.Key = "authenticate", "", attempted(c)
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
		if name := (&input{c: c}).decoded(p.Key); naming.Check(name) == "" {
			return redact(cut(name))
		}
	}
	return ""
}

// resultOf gives ok or the code of the error.
func resultOf(c *gin.Context) string {
	switch code := c.GetString(codeKey); {
	case code != "":
		return code
	case c.Writer.Status() >= 500:
		return string(fault.Internal) // a panic
	}
	return "ok"
}

// attempted gives the id within a key that was refused, if it has the form of
// one. Nothing else of it may be told.
func attempted(c *gin.Context) string {
	keys := c.Request.Header.Values("X-Api-Key")
	if len(keys) != 1 {
		return ""
	}
	return apikey.ID(keys[0])
}

// secretText is an API key or a JSON Web Token, or what looks like one.
var secretText = regexp.MustCompile(`molrun_[a-z]{12}_[0-9A-Za-z_]+|eyJ[0-9A-Za-z_.-]+`)

// redact takes out what could be a key or a token, from text that clients
// choose and that goes into a log.
func redact(text string) string {
	if !strings.Contains(text, "molrun_") && !strings.Contains(text, "eyJ") {
		return text
	}
	return secretText.ReplaceAllString(text, "…")
}
