package md

import "math"

// Vec is a position (nm), velocity (nm/ps) or force (kJ/mol/nm).
type Vec struct{ X, Y, Z float64 }

// Sub returns a - b.
func (a Vec) Sub(b Vec) Vec { return Vec{a.X - b.X, a.Y - b.Y, a.Z - b.Z} }

// AddScaled returns a + s b.
func (a Vec) AddScaled(s float64, b Vec) Vec { return Vec{a.X + s*b.X, a.Y + s*b.Y, a.Z + s*b.Z} }

// Norm2 returns the squared length.
func (a Vec) Norm2() float64 { return a.X*a.X + a.Y*a.Y + a.Z*a.Z }

// Norm returns the length.
func (a Vec) Norm() float64 { return math.Sqrt(a.Norm2()) }
