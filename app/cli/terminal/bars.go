package terminal

import (
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bars shows the progress of what takes long, on standard error: bars on a terminal,
// elsewhere a line at most every few seconds.
type Bars struct {
	t        *Terminal
	progress *mpb.Progress // nil without a terminal
}

// NewBars begins to draw. The caller must call Close.
func (t *Terminal) NewBars() *Bars {
	b := &Bars{t: t}
	if t.Attended() {
		b.progress = mpb.New(mpb.WithOutput(t.Err), mpb.WithWidth(30), mpb.WithRefreshRate(150*time.Millisecond))
	}
	return b
}

// Close stops drawing; bars that have not ended stay as they are.
func (b *Bars) Close() {
	if b.progress != nil {
		b.progress.Shutdown()
	}
}

// Bytes is a transfer of size bytes.
func (b *Bars) Bytes(name string, size int64) *Transfer {
	t := &Transfer{bars: b, name: Clean(name), size: size, begun: time.Now()}
	if b.progress != nil {
		t.bar = b.progress.AddBar(size,
			mpb.PrependDecorators(decor.Name(t.name, decor.WC{C: decor.DindentRight | decor.DextraSpace, W: 24})),
			mpb.AppendDecorators(
				decor.Percentage(decor.WC{W: 5}),
				decor.CountersKiloByte(" % .1f / % .1f"),
				decor.AverageSpeed(decor.SizeB1000(0), "  % .1f"),
				decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}), ""),
			))
		t.bar.EnableTriggerComplete()
	}
	return t
}

// Transfer counts bytes that were sent or received. It is safe for concurrent use.
type Transfer struct {
	bars  *Bars
	bar   *mpb.Bar
	name  string
	size  int64
	begun time.Time

	mu   sync.Mutex
	done int64
	said time.Time
}

// sayEvery is how often a transfer prints its progress where there are no bars.
const sayEvery = 10 * time.Second

// At shows how many bytes are done.
func (t *Transfer) At(done int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = done
	if t.bar != nil {
		t.bar.SetCurrent(done)
		return
	}
	now := time.Now()
	if t.bars.t.Quiet || now.Sub(t.begun) < sayEvery || now.Sub(t.said) < sayEvery || done >= t.size {
		return
	}
	t.said = now
	rate := float64(done) / now.Sub(t.begun).Seconds()
	left := "?"
	if rate > 0 {
		left = Seconds(float64(t.size-done) / rate)
	}
	t.bars.t.Notef("%s: %s of %s, %s/s, %s left", t.name, Size(done), Size(t.size), Size(int64(rate)), left)
}

// End says that the transfer is complete.
func (t *Transfer) End() { t.At(t.size) }

// Job is the progress of a job, a fraction with words.
func (b *Bars) Job(name string) *Line {
	l := &Line{bars: b, name: Clean(name)}
	if b.progress != nil {
		l.bar = b.progress.AddBar(1000,
			mpb.PrependDecorators(decor.Name(l.name, decor.WC{C: decor.DindentRight | decor.DextraSpace})),
			mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), decor.Any(func(decor.Statistics) string { return "  " + l.words() })))
	}
	return l
}

// Line is the progress of a job.
type Line struct {
	bars *Bars
	bar  *mpb.Bar
	name string

	mu   sync.Mutex
	text string
	said string
}

func (l *Line) words() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

// At shows a fraction, from 0 to 1, and a text. Without a terminal, the text is printed
// when their head changes: what a line says before its first comma.
func (l *Line) At(fraction float64, head, detail string) {
	head, detail = Clean(head), Clean(detail)
	text := head
	if detail != "" {
		text += ", " + detail
	}
	l.mu.Lock()
	l.text = text
	said := l.said
	l.said = head
	l.mu.Unlock()
	if l.bar != nil {
		l.bar.SetCurrent(int64(1000 * fraction))
		return
	}
	if head != said {
		l.bars.t.Notef("%s: %s", l.name, text)
	}
}

// End removes the bar.
func (l *Line) End() {
	if l.bar != nil {
		l.bar.Abort(true)
	}
}
