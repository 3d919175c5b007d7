// The metrics of a result in the order of its algorithm, each with its error, unit and
// meaning.
import type { Algorithm } from './api'
import { number, value } from './format'

export type Metric = Algorithm['metrics'][number]
type Results = Readonly<Record<string, unknown>>

export interface Figure { name: string; title: string; text: string; unit: string; reading: string; rank: boolean; group: string }

const most = 6 // main metrics
const longest = 24 // characters of a text value among them

const positive = (v: unknown): v is number => typeof v === 'number' && Number.isFinite(v) && v > 0

/** The standard error of a metric, if known. */
export function errorOf(results: Results, name: string, metrics: readonly Pick<Metric, 'name' | 'errorOf'>[]): number | undefined {
  const v = results[metrics.find((m) => m.errorOf === name)?.name ?? '']
  return positive(v) ? v : undefined
}

/** The meaning of a value: the words of the last reading that it reaches. */
const meaning = (v: number, reading: Metric['reading'] = []) => reading.findLast((r) => r.from === undefined || v >= r.from)?.words ?? ''

const superscript = (n: number) => [...String(n)].map((c) => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(c)])).join('')

/**
 * A value rounded to the precision of its error. The error has two significant digits if its first
 * three are 100 to 354, otherwise one. Without an error, formats like number().
 */
export function measured(v: number, error: number | undefined, digits?: number): string {
  if (!positive(error) || !Number.isFinite(v)) return number(v, digits)
  const power = Math.floor(Math.log10(Math.max(Math.abs(v), error)))
  if (power < -3 || power >= 6) return `(${measured(v / 10 ** power, error / 10 ** power)})×10${superscript(power)}`
  const size = Math.floor(Math.log10(error))
  const behind = (Math.round(error * 10 ** (2 - size)) < 355 ? 1 : 0) - size
  if (behind >= 0) return `${number(v, behind)} ± ${number(error, behind)}`
  const step = 10 ** -behind
  return `${number(Math.round(v / step) * step, 0)} ± ${number(Math.round(error / step) * step, 0)}`
}

/** The metrics in the order of the algorithm, then others; errors are shown with their values. */
export function figures(results: Results, metrics: readonly Metric[]): Figure[] {
  const names = [...metrics.map((m) => m.name).filter((n) => n in results), ...Object.keys(results).filter((n) => !metrics.some((m) => m.name === n))]
  return names.flatMap((name): Figure[] => {
    const m = metrics.find((x) => x.name === name)
    const v = results[name]
    if (v !== null && typeof v === 'object') return []
    if (m?.errorOf && typeof results[m.errorOf] === 'number' && positive(v)) return []
    const numeric = typeof v === 'number'
    const text = v === null ? 'unknown' : numeric ? measured(v, errorOf(results, name, metrics), m?.digits) : value(v)
    return [{ name, title: m?.title ?? name, text, unit: v === null ? '' : (m?.unit ?? ''), reading: numeric ? meaning(v, m?.reading) : '', rank: m?.rank ?? false, group: m?.group ?? '' }]
  })
}

/** The main metrics, shown first. */
export const main = (all: readonly Figure[]) => all.filter((f) => f.group === '' && f.text.length <= longest).slice(0, most)
