package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"molrun/app/unit"
)

// maxHoles is how much of a result may be holes of sparse files. They take no
// room, but every byte is read for the digests, and sent to whoever downloads it.
const maxHoles = 16 << 30

// fewHoles are not worth a look.
const fewHoles = 64 << 10

// sound refuses a result whose files are mostly holes.
func (t *tidying) sound(path string, info fs.FileInfo) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Size()-s.Blocks*512 < fewHoles {
		return nil
	}
	f, err := t.root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	// The room that it takes does not tell: some file systems compress data.
	holes, err := holesOf(f, info.Size())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if t.holes += holes; t.holes > maxHoles {
		return unfit(fmt.Sprintf("The program left files with more than %s of holes (sparse files); let it write only what they hold.", unit.Bytes(maxHoles)))
	}
	return nil
}

// holesOf gives how many bytes of a file were never written.
func holesOf(f *os.File, size int64) (holes int64, err error) {
	const seekData, seekHole = 3, 4 // of lseek(2)
	for at := int64(0); at < size; {
		data, err := f.Seek(at, seekData)
		if errors.Is(err, syscall.ENXIO) { // the rest is one
			return holes + size - at, nil
		}
		if err != nil {
			return 0, err
		}
		holes += data - at
		if at, err = f.Seek(data, seekHole); err != nil {
			return 0, err
		}
	}
	return holes, nil
}
