// Failure reasons of rows, grouped.
import type { Row } from './api'

export interface Group { sentence: string; stopped: boolean; rows: Row[] }

type Failed = Pick<Row, 'jobName' | 'source' | 'failureCode' | 'failureMessage'>

/** The failure reason of a row, with … for the row's own name and source. */
export function reasonOf(row: Failed): string {
  let text = row.failureMessage || (row.failureCode ?? 'It failed.')
  for (const own of [row.source, row.jobName]) if (own && own.length > 2) text = text.replaceAll(own, '…')
  return text
}

/** Groups rows by reason, the most frequent first and stopped jobs last. */
export function grouped(rows: readonly Row[]): Group[] {
  const groups = new Map<string, Group>()
  for (const row of rows) {
    const sentence = reasonOf(row)
    const group = groups.get(sentence)
    if (group) group.rows.push(row)
    else groups.set(sentence, { sentence, stopped: row.failureCode === 'STOPPED', rows: [row] })
  }
  for (const g of groups.values()) if (g.rows.length === 1) g.sentence = g.rows[0]!.failureMessage || g.sentence
  return [...groups.values()].sort((a, b) => Number(a.stopped) - Number(b.stopped) || b.rows.length - a.rows.length)
}

const letters = (text: string) => text.toLowerCase().replace(/^molrun: ?/, '').replace(/[^\p{L}\p{N}]+/gu, ' ').trim()

/** Whether the end of a log says more than the failure message. */
export const saysMore = (logTail: string, message: string) => logTail.split('\n').map(letters).some((l) => l !== '' && !letters(message).includes(l))
