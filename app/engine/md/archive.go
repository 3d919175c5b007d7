package md

// Archive stores numbers or restores them, in the order of the calls. One method
// of a type, Archive, describes both directions, so that they cannot differ. An
// Archive that stores must not change the numbers.
type Archive interface {
	Integer(v *int64)
	Float(v *float64)
	Word(v *uint64)
}

// archiveVectors stores or restores the components of vectors.
func archiveVectors(a Archive, v []Vec) {
	for i := range v {
		a.Float(&v[i].X)
		a.Float(&v[i].Y)
		a.Float(&v[i].Z)
	}
}
