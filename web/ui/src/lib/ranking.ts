// The rows of a batch in order, in pages: failed ones first, or by a metric.
import type { BatchTable, Status } from './api'

/** Where a page begins: the part of the rows, and the key within it. */
export interface Place { part: number; startKey: string }

export interface Ranked { table: BatchTable; next: Place | undefined }

export type Ask = (query: { status: Status[]; limit: number; startKey: string }) => Promise<BatchTable>

/** The parts of a table in which failed rows come first. */
export const failedFirst: readonly Status[][] = [['FAILED'], ['QUEUED', 'RUNNING', 'COMPLETED']]

/** All rows as one part. */
export const together: readonly Status[][] = [[]]

/** Reads a page of rows, continuing with the next part if a part does not fill it. */
export async function page(ask: Ask, parts: readonly Status[][], size: number, from: Place = { part: 0, startKey: '' }): Promise<Ranked> {
  let { part, startKey } = from
  const table = await ask({ status: parts[part]!, limit: size, startKey })
  const rows = [...table.rows]
  let end = table
  while (!end.startKey && part + 1 < parts.length) {
    if (rows.length >= size) return { table: { ...table, rows }, next: { part: part + 1, startKey: '' } }
    startKey = ''
    end = await ask({ status: parts[++part]!, limit: size - rows.length, startKey })
    rows.push(...end.rows)
  }
  return { table: { ...table, rows, metrics: end.metrics }, next: end.startKey ? { part, startKey: end.startKey } : undefined }
}

/** The first rows of a table, up to most, in as many requests as needed. */
export async function firstRows(ask: Ask, status: Status[], most: number): Promise<BatchTable> {
  const table = await ask({ status, limit: Math.min(most, 1000), startKey: '' })
  const rows = [...table.rows]
  for (let key = table.startKey; key && rows.length < most; ) {
    const next = await ask({ status, limit: Math.min(most - rows.length, 1000), startKey: key })
    rows.push(...next.rows)
    key = next.startKey
  }
  return { ...table, rows }
}
