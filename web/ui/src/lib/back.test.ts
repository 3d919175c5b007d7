import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { whenBack } from './back'

let there: boolean
beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('document', { baseURI: 'http://localhost/ui/' })
  vi.stubGlobal('fetch', () => (there ? Promise.resolve(new Response('')) : Promise.reject(new TypeError('no'))))
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('calls once when the server is back', async () => {
  there = false
  const call = vi.fn()
  whenBack(call)
  await vi.advanceTimersByTimeAsync(30_000)
  expect(call).not.toHaveBeenCalled()
  there = true
  await vi.advanceTimersByTimeAsync(60_000)
  expect(call).toHaveBeenCalledTimes(1)
})

test('a server that answers was not the problem', async () => {
  there = true
  const call = vi.fn()
  whenBack(call)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(call).not.toHaveBeenCalled()
})

test('nothing is called after the end', async () => {
  there = false
  const call = vi.fn()
  const end = whenBack(call)
  await vi.advanceTimersByTimeAsync(5_000)
  end()
  there = true
  await vi.advanceTimersByTimeAsync(60_000)
  expect(call).not.toHaveBeenCalled()
})
