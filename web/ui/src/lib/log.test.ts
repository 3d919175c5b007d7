import { expect, test } from 'vitest'
import { before, behind, blocks, isError, LogTail, pieces, plain, wholeLines } from './log'

test('lines that come in parts are joined', () => {
  const tail = new LogTail()
  for (const part of ['one\ntw', 'o\n', 'three']) tail.add(part)
  expect(tail.lines).toEqual(['one', 'two', 'three'])
})

test('a carriage return restarts a line', () => {
  const tail = new LogTail()
  tail.add('10 %\r20 %\r')
  tail.add('30 %\ndone\r\n')
  expect(tail.lines).toEqual(['30 %', 'done\r'])
})

test('terminal control sequences except colors are removed, even if split', () => {
  const tail = new LogTail()
  for (const part of ['\x1b[32mINFO\x1b[', '0m loading\n\r\x1b[K 50%\r\x1b[K100%\n\x1b]0;ti', 'tle\x07\x1b[2J\x1b[Hcleared\x00\n']) tail.add(part)
  expect(tail.lines).toEqual(['\x1b[32mINFO\x1b[0m loading', '100%', 'cleared'])
  expect(tail.lines.map(plain)).toEqual(['INFO loading', '100%', 'cleared'])
})

test('colors and errors are recognized', () => {
  expect(pieces('\x1b[32mINFO\x1b[0m started, \x1b[1;31mbold red\x1b[m text\nplain\n')).toEqual([
    { text: 'INFO', look: 'green' }, { text: ' started, ', look: '' }, { text: 'bold red', look: 'red bold' }, { text: ' text\nplain\n', look: '' },
  ])
  expect(pieces('a\nValueError: \x1b[33mno\x1b[0m\n')).toEqual([{ text: 'a\n', look: '' }, { text: 'ValueError: ', look: 'error' }, { text: 'no', look: 'yellow error' }, { text: '\n', look: 'error' }])
  expect(pieces('\x1b[38;5;12mx')).toEqual([{ text: 'x', look: '' }])
})

test.each([
  ['ERROR: no such file', true], ['2026-01-01 10:00 [ERROR] step 3', true], ['Traceback (most recent call last):', true], ['RuntimeError: CUDA', true], ['Fatal error:', true],
  ['Standard error of Rg 0.1 nm', false], ['root mean square error 0.2', false], ['finished with no errors', false], ['0 errors', false], ['Error bars: 0.1', false],
])('whether %j is an error', (line, want) => expect(isError(line)).toBe(want))

test('a million lines keep their end', () => {
  const tail = new LogTail()
  for (let i = 0; i < 1000; i++) tail.add(Array.from({ length: 1000 }, (_, k) => `line ${i * 1000 + k}\n`).join(''))
  expect(tail.lines.length).toBe(5_000)
  expect(tail.dropped).toBe(995_000)
  expect(tail.lines[0]).toBe('line 995000')
})

test('a line of 10 MB is cut, even if split', () => {
  const tail = new LogTail()
  for (let i = 0; i < 640; i++) tail.add('x'.repeat(16 << 10))
  tail.add('\nnext\n')
  expect(tail.lines.length).toBe(2)
  expect(tail.lines[0]!.length).toBeLessThan(4_100)
  expect(tail.lines[1]).toBe('next')
})

test('long lines keep no more than 1 MiB', () => {
  const tail = new LogTail()
  for (let i = 0; i < 1000; i++) tail.add('y'.repeat(3_900) + '\n')
  expect(tail.lines.join('\n').length).toBeLessThanOrEqual(1 << 20)
})

test('blocks keep their numbers while lines are dropped', () => {
  const lines = Array.from({ length: 450 }, (_, i) => String(i))
  expect(blocks(lines).map((b) => b.number)).toEqual([0, 1, 2])
  const later = blocks(lines.slice(250), 250)
  expect(later.map((b) => b.number)).toEqual([1, 2])
  expect(later[1]).toEqual(blocks(lines)[2])
  expect(blocks([])).toEqual([])
})

test('parts of a log meet, and begin with whole lines', () => {
  const last = before(300_000)
  expect(before(last.from).to).toBe(last.from)
  expect(before(100)).toEqual({ from: 0, to: 100 })
  expect(behind(0, 1000)).toBeUndefined()
  expect(behind(last.from, 1e9)?.from).toBe(last.from)
  expect(wholeLines('lf\nwhole\n', { from: 5, to: 14 })).toBe('whole\n')
  expect(wholeLines('first\n', { from: 0, to: 6 })).toBe('first\n')
  expect(wholeLines('xxxx\n', { from: 5, to: 10 })).toBe('xxxx\n')
})
