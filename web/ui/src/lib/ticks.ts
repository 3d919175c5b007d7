// Axis ticks at round numbers.

/** About n round numbers within a range. */
export function ticks(low: number, high: number, n = 5): number[] {
  if (!(high > low)) return [low]
  const rough = (high - low) / n
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5, 10].find((s) => s * power >= rough) ?? 10)
  const first = Math.ceil(low / step)
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)))
}

/** Round numbers on a logarithmic axis: 1, 2 and 5 of each decade, or only decades if there are many. */
export function logTicks(low: number, high: number): number[] {
  if (!(low > 0 && high > low)) return []
  const [first, last] = [Math.floor(Math.log10(low)), Math.floor(Math.log10(high))]
  const every = Math.max(1, Math.ceil((last - first) / 6))
  const steps = last - first > 2 ? [1] : [1, 2, 5]
  const all: number[] = []
  for (let power = first; power <= last; power += every) for (const s of steps) all.push(Number((s * 10 ** power).toPrecision(12)))
  const within = all.filter((v) => v >= low && v <= high)
  return within.length > 1 ? within : ticks(low, high, 4)
}

/** The indices of numbered items, such as residues, to label: those with round numbers, at most this many. */
export function placeTicks(numbers: readonly number[], most: number): number[] {
  const step = [1, 2, 5].flatMap((s) => [0, 1, 2, 3, 4, 5, 6].map((p) => s * 10 ** p)).sort((a, b) => a - b).find((s) => numbers.length / s <= most) ?? numbers.length
  return numbers.flatMap((v, i) => (v % step === 0 || (step === 1 && !Number.isNaN(v)) ? [i] : []))
}
