package runner

import (
	"time"

	"molrun/app"
	"molrun/app/placement"
)

// gathering picks from the queue what a round has to look at: of each user as
// many jobs as could start if that user had all that is free and not reserved,
// at most lookDepth, but where nothing bounds what is free: there room is for
// all that may be started. Where others take that room, smaller jobs behind them are
// found by the next thorough round, which is never far.
//
// A thorough one looks lookDepth deep at everybody, for the sake of the reasons
// and reservations of jobs that wait.
type gathering struct {
	turns    *turns
	thorough bool
	held     func(app.JobID) bool // in hand already, though still in the queue
	limit    int
	reserved *app.Waiting // as known before

	waiting  []app.Waiting
	begun    bool
	user     user
	priority int
	looked   int
	own, all budget
}

// budget is what is left if everything gathered so far were started.
type budget struct {
	room    placement.Resources
	starts  int
	bounded bool
}

func (b *budget) take(needs placement.Resources) {
	if b.bounded && short(b.room, needs) != (placement.Resources{}) {
		return
	}
	b.room = minus(b.room, needs)
	b.starts--
}

func (b *budget) spent() bool { return b.starts <= 0 || b.bounded && b.room.CPUs <= 0 }

// gather begins a gathering. It is thorough in any case where the job with the
// reservation can start: wherever that one stands, it has to be found.
func (t *turns) gather(now time.Time, limit int, thorough bool, held func(app.JobID) bool) *gathering {
	g := &gathering{turns: t, thorough: thorough, held: held, limit: limit, reserved: t.reservation(now)}
	if g.reserved != nil && t.slots.lacks(g.reserved.Needs, placement.Resources{}) == (placement.Resources{}) {
		g.thorough = true
	}
	g.all = g.fresh()
	return g
}

// visit takes or leaves one job of the queue.
func (g *gathering) visit(w app.Waiting) app.Visit {
	if !g.thorough && g.begun && w.Priority != g.priority && g.all.spent() {
		return app.EndVisit
	}
	if !g.begun || w.Priority != g.priority || userOf(w) != g.user {
		g.begun, g.user, g.priority, g.looked, g.own = true, userOf(w), w.Priority, 0, g.fresh()
		g.own.room = minus(g.own.room, keptFrom(w, g.reserved))
	}
	if g.held(w.ID) {
		return app.NextJob
	}
	g.waiting = append(g.waiting, w)
	g.looked++
	g.own.take(w.Needs)
	g.all.take(w.Needs)
	if g.looked >= g.depth() || !g.thorough && g.own.spent() {
		return app.NextUser
	}
	return app.NextJob
}

func (g *gathering) depth() int {
	if g.turns.slots.bounded {
		return lookDepth
	}
	return max(lookDepth, g.limit)
}

func (g *gathering) fresh() budget {
	s := &g.turns.slots
	return budget{room: s.free(), starts: g.limit, bounded: s.bounded}
}
