import { expect, test } from 'vitest'
import { fileName } from './csv'
import { joined } from './named'

test('a file is named after job and view, once', () => {
  expect(fileName(joined('screen/1', 'Radius of gyration', '-'), '.csv')).toBe('screen-1-Radius-of-gyration.csv')
  expect(joined('screen', 'Metrics of screen', '-')).toBe('Metrics of screen')
  expect(joined('a', 'Radius of a helix', '-')).toBe('Radius of a helix')
  expect(joined('a', 'Radius', '-')).toBe('a-Radius')
  expect(joined(undefined, 'Loss', ': ')).toBe('Loss')
})
