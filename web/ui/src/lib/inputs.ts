// The files that a new job begins with, as its address says: some by name, or one of each of
// the best rows of a batch.
import { segment, type Query } from './address'
import { get, type BatchTable } from './api'
import { firstRows } from './ranking'

/** The most rows whose files a new job takes. */
export const mostRows = 1000

/** A file that each row has: by its path, or as an output of the algorithm, whose path may differ. */
export interface RowFile { reference: string; path: string; title: string }

/** What can be taken of rows, by the files of one of them and the outputs that its algorithm declares. */
export function rowFiles(paths: readonly string[], outputs: readonly { name: string; title: string; file: string }[] = []): RowFile[] {
  return paths.map((path) => {
    const output = outputs.find((o) => matches(o.file, path))
    const alone = output && paths.filter((p) => matches(output.file, p)).length === 1
    return alone ? { reference: '@' + output.name, path, title: `${output.title} (${path})` } : { reference: path, path, title: path }
  })
}

/** Whether a path is one of a pattern, in which a star stands for anything within a name. */
const matches = (pattern: string, path: string) => new RegExp(`^${pattern.split('*').map((s) => s.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('[^/]*')}$`).test(path)

/** The part of an address that says which rows. */
export function ofBatch(batch: string, rows: number, file: RowFile, sort: string, order: string): Query {
  return { batch, top: Math.max(1, Math.min(rows, mostRows)), file: file.reference, like: file.path, sort, order }
}

/** References to the files that an address names. */
export async function inputsOf(q: URLSearchParams, signal?: AbortSignal, read = get<BatchTable>): Promise<string[]> {
  const batch = q.get('batch')
  const file = q.get('file')
  if (!batch || !file) return q.getAll('input')
  const top = Math.max(1, Math.min(Number(q.get('top')) || 1, mostRows))
  const table = await firstRows((page) => read(`jobs/${segment(batch)}/table`, { ...page, sort: q.get('sort'), order: q.get('order') }, signal), ['COMPLETED'], top)
  return table.rows.map((r) => `job:${r.jobName}/${file}`)
}

/** What of an address the choice of a program hands on to its form. */
export function handedOn(q: URLSearchParams): Query {
  return { input: q.getAll('input'), ...Object.fromEntries(['batch', 'top', 'file', 'like', 'sort', 'order', 'each'].map((name) => [name, q.get(name)])) }
}
