// Why rows failed: equal reasons together.
import type { Row } from './api'

export interface Group { sentence: string; stopped: boolean; rows: Row[] }

type Failed = Pick<Row, 'jobName' | 'source' | 'failureCode' | 'failureMessage'>

/** What a row says of its failure, with … for what is its own: its name and what it was made of. */
export function reasonOf(row: Failed): string {
  let text = row.failureMessage || (row.failureCode ?? 'It failed.')
  for (const own of [row.source, row.jobName]) if (own && own.length > 2) text = text.replaceAll(own, '…')
  return text
}

/** Rows with the same reason together, the most frequent first; those that somebody stopped last. */
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

/** Whether the end of a log tells more than the sentence about the failure. */
export const saysMore = (logTail: string, message: string) => logTail.split('\n').map(letters).some((l) => l !== '' && !letters(message).includes(l))
