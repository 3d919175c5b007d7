import { expect, test } from 'vitest'
import type { BatchTable, Row } from './api'
import { failedFirst, firstRows, page, together, type Ask, type Place } from './ranking'

/** A server with rows; a page has at most `most`. */
function server(rows: string[], most = 1000): Ask {
  return async ({ status, limit, startKey }) => {
    const all = rows.filter((r) => status.length === 0 || status.some((s) => r.startsWith(s[0]!)))
    const from = Number(startKey || 0)
    const to = from + Math.min(limit, most)
    return { rows: all.slice(from, to).map((jobName) => ({ jobName }) as Row), metrics: [], ...(to < all.length && { startKey: String(to) }) } as unknown as BatchTable
  }
}

async function pages(ask: Ask, parts: typeof failedFirst, size: number): Promise<string[]> {
  const all: string[] = []
  for (let at: Place | undefined = { part: 0, startKey: '' }; at; ) {
    const { table, next } = await page(ask, parts, size, at)
    all.push(table.rows.map((r) => r.jobName).join(' '))
    at = next
    expect(all.length).toBeLessThan(20)
  }
  return all
}

const rows = ['C1', 'F2', 'C3', 'F4', 'R5', 'F6', 'Q7']

test('failed rows come first, on all pages', async () => {
  expect(await pages(server(rows), failedFirst, 2)).toEqual(['F2 F4', 'F6 C1', 'C3 R5', 'Q7'])
  expect(await pages(server(rows), failedFirst, 3)).toEqual(['F2 F4 F6', 'C1 C3 R5', 'Q7'])
  expect(await pages(server(rows), failedFirst, 100)).toEqual(['F2 F4 F6 C1 C3 R5 Q7'])
  expect(await pages(server(['C1']), failedFirst, 2)).toEqual(['C1'])
  expect(await pages(server(rows), together, 4)).toEqual(['C1 F2 C3 F4', 'R5 F6 Q7'])
})

test('pages that the server cuts short are joined', async () => {
  expect((await firstRows(server(rows, 2), [], 5)).rows.map((r) => r.jobName)).toEqual(['C1', 'F2', 'C3', 'F4', 'R5'])
  expect((await firstRows(server(rows, 2), ['COMPLETED'], 5)).rows.map((r) => r.jobName)).toEqual(['C1', 'C3'])
})
