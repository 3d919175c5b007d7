package listing

import (
	"slices"
	"sync"

	"molrun/app"
)

// pageBuffer holds the records of one page. Pages are the most frequent large answers: with
// a buffer for each, the garbage collector would take a quarter of their time.
type pageBuffer struct {
	bytes []byte
	ends  []int // of each record
}

// keptBuffer is the largest buffer that waits for the next page.
const keptBuffer = 256 << 10

var pageBuffers = sync.Pool{New: func() any { return &pageBuffer{} }}

// copyRecords copies the records of a page out of the transaction, as clients see them.
func (l *Lists) copyRecords(out *Page, page app.JobPage, rows map[app.JobID]*subjobs) {
	b := pageBuffers.Get().(*pageBuffer)
	out.buffer = b
	for _, j := range page.Jobs {
		b.bytes = append(b.bytes, rows[j.ID].addTo(l.jobs.WithLiveState(j))...)
		b.ends = append(b.ends, len(b.bytes))
	}
	out.Records = slices.Grow(out.Records, len(b.ends))
	begin := 0
	for _, end := range b.ends {
		out.Records = append(out.Records, b.bytes[begin:end:end])
		begin = end
	}
}

// Release gives the memory of the records back for other pages. Whoever calls it must not
// touch them afterwards; none has to.
func (p *Page) Release() {
	b := p.buffer
	p.buffer, p.Records = nil, nil
	if b != nil && cap(b.bytes) <= keptBuffer {
		b.bytes, b.ends = b.bytes[:0], b.ends[:0]
		pageBuffers.Put(b)
	}
}
