package cgidp

import "math"

// vec is a position (nm), velocity (nm/ps) or force (kJ/mol/nm).
type vec struct{ X, Y, Z float64 }

func (a vec) sub(b vec) vec             { return vec{a.X - b.X, a.Y - b.Y, a.Z - b.Z} }
func (a vec) plus(s float64, b vec) vec { return vec{a.X + s*b.X, a.Y + s*b.Y, a.Z + s*b.Z} }
func (a vec) norm2() float64            { return a.X*a.X + a.Y*a.Y + a.Z*a.Z }
func (a vec) norm() float64             { return math.Sqrt(a.norm2()) }
