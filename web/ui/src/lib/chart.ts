// What charts draw.
import type { Series, View } from './api'

type Values = readonly (number | null)[]

/** A line with its title as name, with optional standard errors. fit marks a fit to the other lines. */
export interface Line { name: string; unit?: string; values: Values; errors?: Values; fit?: boolean }

/** One run: lines over an axis. ticks are numbers that label the axis instead of x. */
export interface Run { name: string; x: readonly number[]; y: readonly Line[]; xName: string; xUnit?: string; ticks?: Values }

/** A series of a view as a run; undefined while it has no numbers. */
export function runOf(name: string, s: Series, v: View): Run | undefined {
  const [x, ...rest] = s.columns.map((c, i) => ({ ...c, values: s.values[i] ?? [] }))
  const beside = [...Object.values(v.errors ?? {}), v.ticks]
  const lines = rest.filter((c) => !beside.includes(c.name))
  if (!x || lines.length === 0 || s.rows === 0) return undefined
  const named = (column: string | undefined) => rest.find((c) => c.name === column)?.values
  return {
    name, x: x.values.map((n) => n ?? NaN), xName: x.title ?? x.name, xUnit: x.unit, ticks: named(v.ticks),
    y: lines.map((c) => ({ name: c.title ?? c.name, unit: c.unit, values: c.values, errors: named(v.errors?.[c.name]), fit: v.fits?.includes(c.name) ?? false })),
  }
}

/** A row of a scatter plot, such as a job, with its metrics by name. */
export interface Point { id: string; name: string; values: Readonly<Record<string, number | null | undefined>> }

export interface Metric { name: string; title?: string; unit?: string; digits?: number }
