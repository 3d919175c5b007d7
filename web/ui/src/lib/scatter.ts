// Rows as points of a scatter plot.
import type { Point } from './chart'

export interface Placed { id: string; name: string; x: number; y: number }

/** The rows that have both metrics. */
export function place(rows: readonly Point[], x: string, y: string): Placed[] {
  return rows.flatMap((r) => {
    const [a, b] = [r.values[x], r.values[y]]
    return typeof a === 'number' && typeof b === 'number' && Number.isFinite(a) && Number.isFinite(b) ? [{ id: r.id, name: r.name, x: a, y: b }] : []
  })
}

/** A range with a margin at both ends. */
export function roomy(low: number, high: number): [number, number] {
  const room = (high - low || Math.abs(low) || 1) * 0.05
  return [low - room, high + room]
}

/** The point nearest to a position, at most within pixels away. */
export function nearest(points: readonly Placed[], at: (p: Placed) => [number, number], x: number, y: number, within: number): Placed | undefined {
  let best: Placed | undefined
  let least = within * within
  for (const p of points) {
    const [px, py] = at(p)
    const d = (px - x) ** 2 + (py - y) ** 2
    if (d <= least) {
      least = d
      best = p
    }
  }
  return best
}
