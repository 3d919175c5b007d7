package runner

import "molrun/app"

// gathering picks from the queue what a round has to look at: of each user as
// many jobs as could start if that user had all that is free, at most
// lookDepth. A thorough one looks lookDepth deep at everybody, for the sake
// of the reasons and reservations of jobs that wait.
type gathering struct {
	turns    *turns
	thorough bool
	held     func(app.JobID) bool // in hand already, though still in the queue
	limit    int

	waiting  []app.Waiting
	begun    bool
	user     user
	priority int
	looked   int
	own, all budget
}

// budget is what is left if everything gathered so far were started.
type budget struct {
	room    app.Resources
	starts  int
	bounded bool
}

func (b *budget) take(needs app.Resources) {
	if b.bounded && short(b.room, needs) != (app.Resources{}) {
		return
	}
	b.room = minus(b.room, needs)
	b.starts--
}

func (b *budget) spent() bool { return b.starts <= 0 || b.bounded && b.room.CPUs <= 0 }

func (t *turns) gather(limit int, thorough bool, held func(app.JobID) bool) *gathering {
	g := &gathering{turns: t, thorough: thorough, held: held, limit: limit}
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
	}
	if g.held(w.ID) {
		return app.NextJob
	}
	g.waiting = append(g.waiting, w)
	g.looked++
	g.own.take(w.Needs)
	g.all.take(w.Needs)
	if g.looked >= lookDepth || !g.thorough && g.own.spent() {
		return app.NextUser
	}
	return app.NextJob
}

func (g *gathering) fresh() budget {
	s := &g.turns.slots
	return budget{room: s.free(), starts: g.limit, bounded: s.bounded}
}
