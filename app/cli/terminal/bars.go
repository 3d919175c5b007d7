package terminal

import (
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bars shows the progress of long operations on standard error: bars on a terminal,
// elsewhere at most one line every few seconds.
type Bars struct {
	t        *Terminal
	progress *mpb.Progress // nil without a terminal
}

// NewBars starts drawing. The caller must call Close.
func (t *Terminal) NewBars() *Bars {
	b := &Bars{t: t}
	if t.ShowsProgress() {
		b.progress = mpb.New(mpb.WithOutput(t.Err), mpb.WithWidth(30), mpb.WithRefreshRate(150*time.Millisecond))
	}
	return b
}

// Close stops drawing; unfinished bars stay as they are.
func (b *Bars) Close() {
	if b.progress != nil {
		b.progress.Shutdown()
	}
}

// Bytes adds a transfer of size bytes.
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

// Transfer counts transferred bytes. It is safe for concurrent use.
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

// sayEvery is how often a transfer prints its progress if there are no bars.
const sayEvery = 10 * time.Second

// At sets the number of bytes transferred.
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

// End marks the transfer as complete.
func (t *Transfer) End() { t.At(t.size) }

// Job adds the progress of a job: a fraction and a text.
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

// At sets the fraction, from 0 to 1, and the text, which begins with head. Without a
// terminal, the text is printed only when head changes.
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
