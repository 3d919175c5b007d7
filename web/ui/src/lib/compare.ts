// Comparison of jobs: their settings, differing ones first, and their metrics.
import type { Algorithm, Job, Parameter } from './api'
import { errorOf, measured } from './figures'
import { value } from './format'
import { namesOf, readable, shown, toldApart } from './reference'

export interface Compared { job: Pick<Job, 'settings' | 'inputs' | 'metrics'>; metrics: Algorithm['metrics']; parameters: readonly Parameter[] }
export interface Cell { text: string; best?: boolean; standard?: boolean }
export interface Line { name: string; title: string; cells: Cell[]; differs: boolean }

const longest = 300 // characters of a value

const heading = (name: string, title: string | undefined, unit: string | undefined) => (title || name) + (unit ? ` (${unit})` : '')

/** A line for each setting that at least one job has set, with the defaults of the others; differing ones come first. */
export function settingLines(jobs: readonly Compared[]): Line[] {
  const order = [...new Set(jobs.flatMap((c) => c.parameters.map((p) => p.name)))]
  const given = new Set(jobs.flatMap((c) => Object.keys(c.job.settings ?? {})))
  const names = [...order.filter((n) => given.has(n)), ...[...given].filter((n) => !order.includes(n))]
  const lines = names.map((name): Line => {
    const known = jobs.flatMap((c) => c.parameters).find((p) => p.name === name)
    const standard = jobs.map((c) => c.job.settings?.[name] === undefined)
    const own = jobs.map((c, i) => (standard[i] ? c.parameters.find((p) => p.name === name)?.default : c.job.settings![name]))
    const whole = own.map(value)
    const said = (say: typeof shown) => own.map((v, i) => value(readable(v, namesOf(jobs[i]!.job.inputs), say)))
    const texts = new Set(said(shown)).size < new Set(whole).size ? said(toldApart) : said(shown)
    const cells = texts.map((text, i): Cell => ({ text: cut(text), ...(standard[i] && { standard: true }) }))
    return { name, title: heading(name, known?.title, known?.unit), cells, differs: new Set(whole).size > 1 }
  })
  return lines.toSorted((a, b) => Number(b.differs) - Number(a.differs))
}

const cut = (text: string) => (text.length > longest ? text.slice(0, longest) + '…' : text)

/** Whether the values of a metric are comparable: the algorithms agree on what is better, and the jobs on the settings it depends on. */
function compare(jobs: readonly Compared[], m: Algorithm['metrics'][number]): boolean {
  const own = (c: Compared, name: string) => value(c.job.settings?.[name] ?? c.parameters.find((p) => p.name === name)?.default)
  return jobs.every((c) => c.metrics.find((x) => x.name === m.name)?.better === m.better) && (m.same ?? []).every((name) => new Set(jobs.map((c) => own(c, name))).size === 1)
}

/** A line for each metric, the ranking one first. The best value is marked if it is better than all others by more than their errors. */
export function figureLines(jobs: readonly Compared[]): Line[] {
  const plain = (v: unknown) => v === null || typeof v !== 'object'
  const found = new Set(jobs.flatMap((c) => Object.entries(c.job.metrics?.results ?? {}).filter(([, v]) => plain(v)).map(([k]) => k)))
  const known = jobs.flatMap((c) => c.metrics)
  const order = [...new Set([...known.filter((m) => m.rank), ...known].map((m) => m.name))]
  const errors = new Set(known.flatMap((m) => (m.errorOf && found.has(m.errorOf) ? [m.name] : [])))
  const names = [...order.filter((n) => found.has(n) && !errors.has(n)), ...[...found].filter((n) => !order.includes(n))]
  return names.map((name): Line => {
    const m = known.find((x) => x.name === name)
    const values = jobs.map((c) => c.job.metrics?.results?.[name])
    const numbers = values.filter((v) => typeof v === 'number')
    const error = jobs.map((c) => errorOf(c.job.metrics?.results ?? {}, name, c.metrics))
    const best = m?.better && compare(jobs, m) && new Set(numbers).size > 1 ? (m.better === 'lower' ? Math.min(...numbers) : Math.max(...numbers)) : undefined
    const of = values.indexOf(best)
    const sure = values.every((v, i) => typeof v !== 'number' || v === best || Math.abs(v - best!) > 2 * Math.hypot(error[i] ?? 0, error[of] ?? 0))
    const cells = values.map((v, i): Cell => ({ text: cut(typeof v === 'number' ? measured(v, error[i], m?.digits) : plain(v) ? value(v) : ''), ...(best !== undefined && sure && v === best && { best: true }) }))
    return { name, title: heading(name, m?.title, m?.unit), cells, differs: new Set(cells.map((c) => c.text)).size > 1 }
  })
}
