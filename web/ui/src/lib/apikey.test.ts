import { expect, test } from 'vitest'
import { apiKey } from './apikey'

test('white space around a key does not count', () => {
  for (const around of ['', ' ', '\t', '\r', '\n', ' \t\r\n']) {
    expect(apiKey(`${around}molrun_a_B_9${around}`)).toEqual({ key: 'molrun_a_B_9', problem: '' })
  }
  expect(apiKey(' \n')).toEqual({ key: '', problem: '' })
})

test('a key with other characters is refused without showing it', () => {
  for (const inside of ['\n', ' ', '\u00a0', '\u200b', '"', 'é']) {
    const { problem } = apiKey(`molrun_a${inside}b`)
    expect(problem).toContain('letters, digits and underscores')
    expect(problem).not.toContain('molrun_a')
  }
})
