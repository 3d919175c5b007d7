package listing

import (
	"slices"
	"sync"

	"molrun/app"
)

// pageBuffer holds the records of one page. Pages are the most frequent large responses:
// with a new buffer for each, garbage collection would take a quarter of their time.
type pageBuffer struct {
	bytes []byte
	ends  []int // end offset of each record
}

// keptBuffer is the maximum size of a buffer kept for reuse.
const keptBuffer = 256 << 10

var pageBuffers = sync.Pool{New: func() any { return &pageBuffer{} }}

// copyRecords copies the records of a page out of the transaction, as shown to clients.
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

// Release makes the memory of the records available for other pages. The caller must not
// use them afterwards. Calling Release is optional.
func (p *Page) Release() {
	b := p.buffer
	p.buffer, p.Records = nil, nil
	if b != nil && cap(b.bytes) <= keptBuffer {
		b.bytes, b.ends = b.bytes[:0], b.ends[:0]
		pageBuffers.Put(b)
	}
}
