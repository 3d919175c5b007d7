// Downsamples long lines, so that drawing is fast and peaks stay visible.

/** The indices of the points to keep, ascending: the first and last, and the minimum and maximum of each interval. */
export function thin(values: readonly (number | null)[], most: number): number[] {
  const n = values.length
  if (n <= most) return Array.from({ length: n }, (_, i) => i)
  const stretches = Math.max(1, Math.floor((most - 2) / 2))
  const kept = new Set<number>([0, n - 1])
  for (let s = 0; s < stretches; s++) {
    const from = Math.floor((s * n) / stretches)
    const to = Math.floor(((s + 1) * n) / stretches)
    let low = -1
    let high = -1
    for (let i = from; i < to; i++) {
      const v = values[i]
      if (v === null || v === undefined) continue
      if (low < 0 || v < values[low]!) low = i
      if (high < 0 || v > values[high]!) high = i
    }
    if (low >= 0) kept.add(low).add(high)
  }
  return [...kept].sort((a, b) => a - b)
}
