package result

import "testing"

// TestZipRecordsHaveTheirLengths checks what layOut relies on.
func TestZipRecordsHaveTheirLengths(t *testing.T) {
	sizes := []int64{0, 1, maxUint32 - 1, maxUint32, maxUint32 + 1, 1 << 40}
	for _, size := range sizes {
		for _, offset := range sizes {
			e := &zipEntry{name: "a/b", size: size, offset: offset}
			if got := int64(len(appendLocal(nil, e))); got != e.localLen() {
				t.Errorf("%+v: local header of %d bytes, want %d", e, got, e.localLen())
			}
			if got := int64(len(appendCentral(nil, e))); got != e.centralLen() {
				t.Errorf("%+v: central record of %d bytes, want %d", e, got, e.centralLen())
			}
			for _, n := range []int64{0, maxUint16 - 1, maxUint16, 1 << 20} {
				z := zipEnd{entries: n, start: size, size: offset}
				if got := int64(len(z.appendTo(nil))); got != z.length() {
					t.Errorf("%+v: end of %d bytes, want %d", z, got, z.length())
				}
			}
		}
	}
}
