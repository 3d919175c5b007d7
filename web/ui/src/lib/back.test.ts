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

test('calls when the server is back, until it is ended', async () => {
  there = false
  const call = vi.fn()
  const end = whenBack(call)
  await vi.advanceTimersByTimeAsync(30_000)
  expect(call).not.toHaveBeenCalled()
  there = true
  await vi.advanceTimersByTimeAsync(15_000)
  expect(call).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(15_000)
  expect(call).toHaveBeenCalledTimes(2)
  end()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(call).toHaveBeenCalledTimes(2)
})

test('a server that was away and answers at once is back', async () => {
  there = true
  const call = vi.fn()
  const end = whenBack(call, true)
  await vi.advanceTimersByTimeAsync(1)
  expect(call).toHaveBeenCalledTimes(1)
  end()
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
