package pack

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"molrun/app/base/digest"
)

// equal reports whether two files, or two folders, have the same names, sizes and bytes.
func equal(ctx context.Context, a, b string) (bool, error) {
	filesA, err := list(a)
	if err != nil {
		return false, err
	}
	filesB, err := list(b)
	if err != nil || len(filesA) != len(filesB) {
		return false, err
	}
	for name, size := range filesA {
		if other, ok := filesB[name]; !ok || other != size {
			return false, nil
		}
	}
	d := digest.New()
	for name := range filesA {
		same, err := sameBytes(ctx, d, filepath.Join(a, name), filepath.Join(b, name))
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// list returns the sizes of the files below a folder, or of a file under the name "".
func list(root string) (map[string]int64, error) {
	files := map[string]int64{}
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		below := strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
		if info.Mode().IsRegular() && !strings.HasPrefix(filepath.Base(name), ".") {
			files[below] = info.Size()
		}
		return nil
	})
	return files, err
}

func sameBytes(ctx context.Context, d *digest.Digester, a, b string) (bool, error) {
	sumA, _, err := d.File(ctx, a)
	if err != nil {
		return false, err
	}
	sumB, _, err := d.File(ctx, b)
	return sumA == sumB, err
}
