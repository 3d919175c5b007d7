import { expect, test } from 'vitest'
import { built, flattened, folded, hasLengths, layout, parseNewick, upwards } from './newick'

test('names, lengths and support', () => {
  const t = parseNewick("(A:0.1,'B c(1)':2e-1,(C_d:0.3,D:0.4)95/0.9:0.5)root;")
  expect(t.name).toBe('root')
  expect(t.leaves).toBe(4)
  expect(t.children.map((c) => [c.name, c.length, c.support])).toEqual([['A', 0.1, undefined], ['B c(1)', 0.2, undefined], ['', 0.5, 95]])
  expect(t.children[2]!.children.map((c) => c.name)).toEqual(['C d', 'D'])
})

test('comments are left out, and so is a second tree', () => expect(upwards(parseNewick('[&R] (a[x],b)[y];(c,d);')).map((n) => n.name)).toContain('a'))

test.each([['((a,b);', 'opens more'], ['(a,b));', 'closes more'], ['a,b;', 'comma'], ['', 'no tree']])('%j is refused', (text, why) => expect(() => parseNewick(text)).toThrow(why))

test('a deep tree does not exhaust the stack', () => {
  const n = 20_000
  const t = parseNewick('('.repeat(n) + 'a' + ',b)'.repeat(n) + ';')
  expect(t.leaves).toBe(n + 1)
  expect(layout(t, folded(t, 100), false).rows).toBe(100)
})

test('places follow lengths, and parents lie between children', () => {
  const t = parseNewick('(a:1,(b:1,c:3):1);')
  expect(hasLengths(t)).toBe(true)
  const { nodes, rows, depth } = layout(t, new Set(), true)
  expect([rows, depth]).toEqual([3, 4])
  expect(nodes.map((p) => [p.node.name, p.x, p.y])).toEqual([['', 0, 0.75], ['a', 0.25, 0], ['', 0.25, 1.5], ['b', 0.5, 1], ['c', 1, 2]])
})

test.each(["(A:0.1,'B c(1)':2e-1,(C_d:0.3,D:0.4)95/0.9:0.5)root;", '('.repeat(5000) + 'a' + ',b)'.repeat(5000) + ';', '(' + 'a,'.repeat(150_000) + 'b);'])('a tree is the same after it was flattened', async (text) => {
  const t = parseNewick(text)
  const again = await built(flattened(t))
  const told = (root: typeof t) => upwards(root).map((n) => [n.id, n.name, n.length, n.support, n.leaves, n.children.length].join())
  expect(told(again).join(' ') === told(t).join(' ')).toBe(true)
})
