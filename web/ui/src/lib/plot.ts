// Converts runs to the aligned columns that uPlot draws.
import uPlot from 'uplot'
import type { Line, Run } from './chart'
import { okabeIto } from './colours'
import { number } from './format'
import { thin } from './thin'

const mostPoints = 20_000 // drawn of one line

/** low and high are the columns of the error band; line and points say what is drawn. */
export interface Drawn { label: string; colour: string; unit: string; scale: string; dash?: number[]; line: boolean; points: boolean; low?: number; high?: number }
/** Columns after those of the lines are the bounds of error bands. */
export interface Plot { data: uPlot.AlignedData; lines: Drawn[]; scales: { key: string; label: string }[] }

const fewPoints = 40 // below this, the points of a line are marked
const longestLabel = 36 // characters of the names at an axis

const dashes: (number[] | undefined)[] = [undefined, [6, 4], [2, 3], [8, 3, 2, 3]]

/** All lines of all runs. A single run has a color per line; with several, each run has a color and each line a dash pattern. */
export function plot(runs: readonly Run[], ink: string): Plot {
  const units = [...new Set(runs.flatMap((r) => r.y.map((l) => l.unit ?? '')))]
  const ofScale = (unit: string | undefined) => Math.min(1, units.indexOf(unit ?? ''))
  const scales = units.slice(0, 2).map((_, i) => ({ key: `y${i}`, label: scaleLabel(runs.flatMap((r) => r.y).filter((l) => ofScale(l.unit) === i)) }))
  const several = runs.length > 1
  const lines = runs.flatMap((r, run) => r.y.map((l, line): Drawn => {
    const colour = okabeIto[(several ? run : line) % okabeIto.length]!
    const dash = several ? dashes[line % dashes.length] : undefined
    const fitted = r.y.some((other) => other.fit)
    const points = fitted ? !l.fit : r.x.length < fewPoints
    return { label: label(r, l, several), colour: colour === '#000000' ? ink : colour, unit: l.unit ?? '', scale: `y${ofScale(l.unit)}`, line: !fitted || l.fit === true, points, ...(dash && { dash }) }
  }))
  const all = runs.flatMap((run) => run.y.map((line) => ({ run, line })))
  const tables = all.map(({ run, line }) => column(run, line, line.values))
  all.forEach(({ run, line }, i) => {
    if (!line.errors) return
    lines[i]!.low = tables.push(column(run, line, bound(line, -1)))
    lines[i]!.high = tables.push(column(run, line, bound(line, 1)))
  })
  const data = tables.length === 0 ? ([[]] as unknown as uPlot.AlignedData) : tables.length === 1 ? tables[0]! : uPlot.join(tables)
  return { data, lines, scales }
}

/** The values shifted by one standard error. */
const bound = (l: Line, sign: number) => l.values.map((v, i) => (v === null || typeof l.errors?.[i] !== 'number' ? null : v + sign * l.errors[i]))

/** The label of an axis: the names of its lines, if few and short, and their units. */
function scaleLabel(lines: readonly Line[]): string {
  const names = [...new Set(lines.filter((l) => !l.fit).map((l) => l.name))]
  const units = [...new Set(lines.flatMap((l) => l.unit || []))].join(', ')
  return names.length <= 2 && (names.length < 2 || names.join(', ').length <= longestLabel) ? withUnit(names.join(', '), units) : units
}

function label(run: Run, line: Line, several: boolean): string {
  if (!several) return line.name
  return run.y.length > 1 ? `${run.name}: ${line.name}` : run.name
}

/** The values at the drawn points of a line. */
function column(run: Run, line: Line, values: readonly (number | null)[]): uPlot.AlignedData {
  const kept = ordered(run.x, thin(line.values, mostPoints))
  return [kept.map((i) => run.x[i]!), kept.map((i) => values[i] ?? null)]
}

/** The points in ascending x, as uPlot requires. */
function ordered(x: readonly number[], kept: number[]): number[] {
  const known = kept.filter((i) => Number.isFinite(x[i]))
  return known.every((i, at) => at === 0 || x[i]! >= x[known[at - 1]!]!) ? known : known.sort((a, b) => x[a]! - x[b]!)
}

export const withUnit = (name: string, unit?: string) => (unit ? `${name} (${unit})` : name)

/** The minimum and maximum. Math.min(...values) would need all arguments on the stack. */
export function range(values: readonly (number | null | undefined)[]): [number, number] | undefined {
  let low = Infinity
  let high = -Infinity
  for (const v of values) {
    if (v === null || v === undefined || !Number.isFinite(v)) continue
    if (v < low) low = v
    if (v > high) high = v
  }
  return low <= high ? [low, high] : undefined
}

/** A description of the lines for screen readers. */
export function sentence(title: string, runs: readonly Run[]): string {
  const parts = runs.slice(0, 8).flatMap((r) => r.y.slice(0, 8).map((l) => {
    const y = range(l.values)
    if (!y) return `${label(r, l, runs.length > 1)} has no values`
    const unit = l.unit ? ' ' + l.unit : ''
    const last = l.values.findLast((v) => v !== null)
    return `${label(r, l, runs.length > 1)} from ${number(y[0])} to ${number(y[1])}${unit}, last ${number(last!)}${unit}`
  }))
  const x = range(runs.flatMap((r) => range(r.x) ?? []))
  const over = x ? `, ${runs[0]!.xName} from ${number(x[0])} to ${number(x[1])}${runs[0]!.xUnit ? ' ' + runs[0]!.xUnit : ''}` : ''
  return `${title}${over}: ${parts.join('; ')}.`
}

/** All points as a table: the axis, then each line, followed by its errors. */
export function table(all: readonly Run[]): { header: string[]; rows: (number | null)[][] } {
  const runs = all.map((r) => ({ ...r, y: r.y.flatMap((l): Line[] => (l.errors ? [l, { name: `${l.name}, standard error`, unit: l.unit, values: l.errors }] : [l])) }))
  const several = runs.length > 1
  const header = [withUnit(runs[0]?.xName ?? 'x', runs[0]?.xUnit), ...runs.flatMap((r) => r.y.map((l) => withUnit(label(r, l, several), l.unit)))]
  const rows = new Map<number, (number | null)[]>()
  let at = 1
  for (const r of runs) {
    for (const l of r.y) {
      r.x.forEach((x, i) => {
        let row = rows.get(x)
        if (!row) rows.set(x, (row = [x, ...Array<null>(header.length - 1).fill(null)]))
        row[at] = l.values[i] ?? null
      })
      at++
    }
  }
  return { header, rows: [...rows.values()].sort((a, b) => a[0]! - b[0]!) }
}
