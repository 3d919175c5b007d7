// The input files of a new job, from its URL: some by name, or one from each of the best rows of
// a batch.
import { segment, type Query } from './address'
import { get, type BatchTable } from './api'
import { firstRows } from './ranking'

/** The maximum number of rows whose files a new job can use. */
export const mostRows = 1000

/** A file of each row: by its path, or as an output of the algorithm, whose path can differ between rows. */
export interface RowFile { reference: string; path: string; title: string }

/** The files available from rows, given the files of one row and the outputs of its algorithm. */
export function rowFiles(paths: readonly string[], outputs: readonly { name: string; title: string; file: string }[] = []): RowFile[] {
  return paths.map((path) => {
    const output = outputs.find((o) => matches(o.file, path))
    const alone = output && paths.filter((p) => matches(output.file, p)).length === 1
    return alone ? { reference: '@' + output.name, path, title: `${output.title} (${path})` } : { reference: path, path, title: path }
  })
}

/** Whether a path matches a pattern, in which * matches anything but a slash. */
const matches = (pattern: string, path: string) => new RegExp(`^${pattern.split('*').map((s) => s.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('[^/]*')}$`).test(path)

/** The query that selects the rows. */
export function ofBatch(batch: string, rows: number, file: RowFile, sort: string, order: string): Query {
  return { batch, top: Math.max(1, Math.min(rows, mostRows)), file: file.reference, like: file.path, sort, order }
}

/** References to the files that the URL names. */
export async function inputsOf(q: URLSearchParams, signal?: AbortSignal, read = get<BatchTable>): Promise<string[]> {
  const batch = q.get('batch')
  const file = q.get('file')
  if (!batch || !file) return q.getAll('input')
  const top = Math.max(1, Math.min(Number(q.get('top')) || 1, mostRows))
  const table = await firstRows((page) => read(`jobs/${segment(batch)}/table`, { ...page, sort: q.get('sort'), order: q.get('order') }, signal), ['COMPLETED'], top)
  return table.rows.map((r) => `job:${r.jobName}/${file}`)
}

/** The part of the query that the choice of a program passes on to its form. */
export function handedOn(q: URLSearchParams): Query {
  return { input: q.getAll('input'), ...Object.fromEntries(['batch', 'top', 'file', 'like', 'sort', 'order', 'each'].map((name) => [name, q.get(name)])) }
}
