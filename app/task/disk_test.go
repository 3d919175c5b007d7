package task

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// smallDisk returns a directory on a separate file system of this size.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=700", mib)); err != nil {
		must.Skip(t, "mounting a small file system requires root: %v", err)
	}
	t.Cleanup(func() { must.OK(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

func TestGrowingTaskFailsOnFullDisk(t *testing.T) {
	dir := smallDisk(t, 64)
	write := func(name string, mib int) {
		must.Write(t, filepath.Join(dir, name), string(make([]byte, mib<<20)))
	}
	now := time.Unix(1_700_000_000, 0)
	d := disk{reserve: 32 << 20}
	check := func(when string, ends bool) {
		t.Helper()
		now = now.Add(10 * time.Second)
		if excess := d.checkUsage(dir, now); (excess != "") != ends {
			t.Errorf("%s: %q, must end: %v", when, excess, ends)
		}
	}
	check("an empty disk", false)
	write("work/in/large", 20)
	check("files that were laid in", false)
	write("work/out/a", 16)
	check("the disk is short, which others may have done", false)
	write("log", 1)
	check("a few lines of a log", false)
	write("work/out/b", 8)
	check("it goes on", true)
	must.OK(t, os.Remove(filepath.Join(dir, "work/in/large")))
	check("there is space again", false)

	limited := disk{limit: 30 << 20}
	if excess := limited.checkUsage(dir, now); excess != "" {
		t.Error(excess)
	}
	write("work/out/c", 8)
	if excess := limited.checkUsage(dir, now.Add(time.Minute)); excess == "" {
		t.Error("33 MiB of 30 were written, but the task can continue")
	}
	written, err := ReadWritten(dir)
	must.OK(t, err)
	if written < 33<<20 || written > 34<<20 {
		t.Errorf("reported %d bytes written", written)
	}
	for i, ends := range []bool{false, true} {
		must.OK(t, WriteQuota(dir, []int64{64 << 20, 32 << 20}[i]))
		if excess := limited.checkUsage(dir, now.Add(time.Duration(i+2)*time.Minute)); (excess != "") != ends {
			t.Errorf("33 MiB are written, and %d remain after others: %q", limited.limit, excess)
		}
	}
}

// TestTenWritersLeaveTheReserve checks that tasks which keep writing end. With
// TEST_FAST_WRITERS they write at full speed, and the test checks how far free space
// drops below the threshold, which depends on the load of the machine.
func TestTenWritersLeaveTheReserve(t *testing.T) {
	const reserve, tolerance = 512 << 20, 64 << 20
	parent := smallDisk(t, 1536)
	fast, write := os.Getenv("TEST_FAST_WRITERS") != "", `while sleep 0.02; do head -c 1M /dev/zero >> out/a || exit; done`
	if fast {
		write = `head -c 1G /dev/zero > out/a`
	}
	var most atomic.Int64
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if free, err := freeBytes(parent); err == nil {
				most.Store(max(most.Load(), reserve-free))
			}
		}
	})
	var all []*running
	for i := range 10 {
		a := newAttemptIn(t, filepath.Join(parent, fmt.Sprint(i)), write)
		a.isolation.Reserve = reserve
		all = append(all, a.start())
	}
	for _, r := range all {
		if o := r.outcome(); o.Cause != protocol.CauseDisk || !strings.Contains(o.Message, "disk.reserve") {
			t.Errorf("the cause is %q: %s", o.Cause, o.Message)
		}
	}
	close(stop)
	watching.Wait()
	t.Logf("%d MiB of the reserve were taken", most.Load()>>20)
	if most.Load() > tolerance && fast {
		t.Errorf("want at most %d MiB", tolerance>>20)
	}
}
