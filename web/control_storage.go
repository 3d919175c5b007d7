package web

import (
	"encoding/json"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/retention"
	"molrun/app/unit"
)

type storageRequest struct{ by retention.ReportBy }

func (r *storageRequest) read(in *input) {
	r.by = or(retention.ReportBy(in.text("by")), retention.ByOrganization)
	switch r.by {
	case retention.ByOrganization, retention.ByUser, retention.ByAlgorithm, retention.ByAge:
	default:
		in.fault("value", []any{"query", "by"}, "use organization, user, algorithm or age")
	}
	in.noBody()
}

// storage handles GET /control/storage.
func (o *control) storage(c *gin.Context) {
	req, err := decode[storageRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	report, err := o.keeper.Report(ctx(c), req.by)
	if err != nil {
		fail(c, err)
		return
	}
	reply(c, report)
}

type pruneRequest struct{ retention.PruneRequest }

func (r *pruneRequest) read(in *input) {
	b := in.object(required)
	ended := b.text("endedBefore", required)
	r.Failed = b.flag("failed")
	r.Organization = b.text("organization", optional)
	r.User = b.text("user", optional)
	r.Algorithm = b.text("algorithm", optional)
	r.LargerThan = valueOf(b.integer("largerThan", 0, maxExact))
	r.DryRun = b.flag("dryRun")
	after := b.text("after", optional)
	var err error
	if r.EndedBefore, err = time.Parse(unit.TimeLayout, ended); err != nil && ended != "" {
		b.fault("value", "endedBefore", "use a time such as 2026-11-20T10:40:00.000Z")
	}
	if after != "" && json.Unmarshal([]byte(after), &r.After) != nil {
		b.fault("value", "after", "send what the page before gave as next")
	}
}

// prunedView is a page; Next is left out on the last.
type prunedView struct {
	Jobs []app.Expired `json:"jobs"`
	Next string        `json:"next,omitempty"`
}

// prune handles POST /control/prune.
func (o *control) prune(c *gin.Context) {
	req, err := decode[pruneRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	about(c, req.Organization)
	if req.DryRun {
		nothingDone(c)
	}
	page, err := o.keeper.Prune(ctx(c), req.PruneRequest)
	if err != nil {
		fail(c, err)
		return
	}
	if !req.DryRun {
		for _, e := range page.Jobs {
			logger(c).Info().Str("job", string(e.Job)).Str("name", e.Name).Str("organization", e.Organization).
				Strs("uploads", e.Uploads).Int64("bytes", e.Bytes).Msg("deleted by prune")
		}
	}
	view := prunedView{Jobs: append([]app.Expired{}, page.Jobs...)}
	if page.Next != nil {
		next, err := json.Marshal(page.Next)
		if err != nil {
			fail(c, err)
			return
		}
		view.Next = string(next)
	}
	reply(c, view)
}
