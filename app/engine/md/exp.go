package md

import "math"

// Exp is the exponential function with the same bits on every processor. Package math
// uses fused multiply-add where available and separate implementations for some
// architectures, so trajectories would differ between machines of one cluster. The
// algorithm is that of FreeBSD's e_exp.c, with an error of about one unit in the last
// place. The conversions to float64 keep the compiler from fusing operations.
func Exp(x float64) float64 {
	const (
		ln2Hi  = 6.93147180369123816490e-01
		ln2Lo  = 1.90821492927058770002e-10
		most   = 7.09782712893383973096e+02
		least  = -7.45133219101941108420e+02
		p1, p2 = 1.66666666666666657415e-01, -2.77777777770155933842e-03
		p3, p4 = 6.61375632143793436117e-05, -1.65339022054652515390e-06
		p5     = 4.13813679705723846039e-08
	)
	switch {
	case math.IsNaN(x):
		return x
	case x > most:
		return math.Inf(1)
	case x < least:
		return 0
	}
	k := math.Floor(float64(math.Log2E*x) + 0.5)
	high, low := x-float64(k*ln2Hi), float64(k*ln2Lo)
	r := high - low
	t := float64(r * r)
	p := p4 + float64(t*p5)
	p = p3 + float64(t*p)
	p = p2 + float64(t*p)
	p = p1 + float64(t*p)
	c := r - float64(t*p)
	y := 1 - ((low - float64(r*c)/(2-c)) - high)
	return math.Ldexp(y, int(k))
}

// power returns base^exponent for a positive base, using Exp.
func power(base, exponent float64) float64 { return Exp(exponent * math.Log(base)) }
