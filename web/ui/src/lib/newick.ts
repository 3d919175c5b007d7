// Newick trees and their layout.

import { inSlices } from './breathe'

export interface Node { id: number; name: string; length: number | undefined; support: number | undefined; children: Node[]; leaves: number }

const most = 200_000 // nodes

/** Reads the first tree of a text. */
export function parseNewick(text: string): Node {
  let id = 0
  const make = (): Node => ({ id: id++, name: '', length: undefined, support: undefined, children: [], leaves: 0 })
  const root = make()
  const above: Node[] = []
  let node = root
  for (const token of tokens(text)) {
    if (id > most) throw new Error(`The tree has more than ${most.toLocaleString('en')} nodes.`)
    if (token === '(') {
      above.push(node)
      node = child(node, make())
    } else if (token === ',') {
      const parent = above.at(-1)
      if (!parent) throw new Error('The tree has a comma outside parentheses.')
      node = child(parent, make())
    } else if (token === ')') {
      const parent = above.pop()
      if (!parent) throw new Error('The tree closes more parentheses than it opens.')
      node = parent
    } else if (token.startsWith(':')) {
      const length = Number(token.slice(1))
      if (Number.isFinite(length)) node.length = length
    } else {
      label(node, token)
    }
  }
  if (above.length > 0) throw new Error('The tree opens more parentheses than it closes.')
  if (root.children.length === 0 && root.name === '') throw new Error('The file has no tree.')
  count(root)
  return root
}

function child(parent: Node, node: Node): Node {
  parent.children.push(node)
  return node
}

/** A numeric label of an inner node, such as 95 or 0.95/100, is the support of its branch. */
function label(node: Node, token: string) {
  const quoted = token.startsWith("'")
  const text = quoted ? token.slice(1, -1).replaceAll("''", "'") : token.replaceAll('_', ' ')
  const support = Number.parseFloat(text)
  if (!quoted && node.children.length > 0 && /^[\d.]+(\/[\d.]+)*$/.test(text)) node.support = support
  else node.name = text
}

/** Parentheses, commas, lengths and labels; comments in square brackets are skipped. */
function* tokens(text: string): Generator<string> {
  const pattern = /\[[^\]]*\]|'(?:[^']|'')*'|[(),;]|:\s*[^\s(),:;[]+|[^\s(),:;['][^(),:;['\n]*/g
  for (const [token] of text.matchAll(pattern)) {
    if (token === ';') return
    if (token.startsWith('[')) continue
    yield token.startsWith(':') ? ':' + token.slice(1).trim() : token.trim()
  }
}

/** The nodes, children before parents. Not recursive, since a deep tree would exhaust the stack. */
export function upwards(root: Node): Node[] {
  const out: Node[] = []
  const todo = [root]
  for (let n = todo.pop(); n; n = todo.pop()) {
    out.push(n)
    for (const c of n.children) todo.push(c)
  }
  return out.reverse()
}

function count(root: Node) {
  for (const n of upwards(root)) n.leaves = n.children.length === 0 ? 1 : n.children.reduce((sum, c) => sum + c.leaves, 0)
}

/** A tree as arrays indexed by node id, which a worker can send at any depth. */
export interface FlatTree { names: string[]; parents: Int32Array; lengths: Float64Array; supports: Float64Array }

export function flattened(root: Node): FlatTree {
  const nodes = upwards(root)
  const flat = { names: new Array<string>(nodes.length).fill(''), parents: new Int32Array(nodes.length).fill(-1), lengths: new Float64Array(nodes.length).fill(NaN), supports: new Float64Array(nodes.length).fill(NaN) }
  for (const n of nodes) {
    flat.names[n.id] = n.name
    flat.lengths[n.id] = n.length ?? NaN
    flat.supports[n.id] = n.support ?? NaN
    for (const c of n.children) flat.parents[c.id] = n.id
  }
  return flat
}

const given = (v: number) => (Number.isNaN(v) ? undefined : v)

/** Rebuilds a tree. Parents precede their children, which are in order. */
export async function built(flat: FlatTree, signal?: AbortSignal): Promise<Node> {
  const nodes: Node[] = []
  await inSlices(flat.names.length, (id) => {
    const node: Node = { id, name: flat.names[id]!, length: given(flat.lengths[id]!), support: given(flat.supports[id]!), children: [], leaves: 0 }
    nodes.push(node)
    nodes[flat.parents[id]!]?.children.push(node)
  }, signal)
  const root = nodes[0]!
  await inSlices(nodes.length, (i) => {
    const n = nodes[nodes.length - 1 - i]!
    if (n.children.length === 0) n.leaves = 1
    const parent = nodes[flat.parents[n.id]!]
    if (parent) parent.leaves += n.leaves
  }, signal)
  return root
}

/** The clades to collapse so that at most this many rows are shown; the largest are expanded first. */
export function folded(root: Node, rows: number): Set<number> {
  const closed = new Map<number, Node>([[root.id, root]])
  const queue = [root]
  let shown = 1
  while (queue.length > 0) {
    const n = queue.shift()!
    if (shown + n.children.length - 1 > rows) break
    shown += n.children.length - 1
    closed.delete(n.id)
    for (const c of n.children) {
      if (c.children.length === 0) continue
      closed.set(c.id, c)
      const at = queue.findIndex((q) => q.leaves < c.leaves)
      queue.splice(at < 0 ? queue.length : at, 0, c)
    }
  }
  return new Set(closed.keys())
}

export interface Placed { node: Node; parent: Placed | undefined; x: number; y: number; row: number; closed: boolean }

/** The positions of the shown nodes: x from 0 to 1, y in rows. With lengths, x is the distance from the root. */
export function layout(root: Node, closed: ReadonlySet<number>, lengths: boolean): { nodes: Placed[]; rows: number; depth: number } {
  const nodes: Placed[] = []
  let rows = 0
  const todo: Placed[] = [{ node: root, parent: undefined, x: 0, y: 0, row: 0, closed: closed.has(root.id) }]
  for (let p = todo.pop(); p; p = todo.pop()) {
    nodes.push(p)
    if (p.closed || p.node.children.length === 0) {
      p.y = p.row = rows++
      continue
    }
    for (const c of [...p.node.children].reverse()) todo.push({ node: c, parent: p, x: p.x + (lengths ? Math.max(0, c.length ?? 0) : 1), y: 0, row: -1, closed: closed.has(c.id) })
  }
  middle(nodes)
  const depth = nodes.reduce((m, p) => Math.max(m, p.x), 0)
  if (depth > 0) for (const p of nodes) p.x /= depth
  return { nodes, rows, depth }
}

/** Puts each inner node between the first and last of its children. */
function middle(nodes: Placed[]) {
  const span = new Map<Placed, [number, number]>()
  for (const p of [...nodes].reverse()) {
    const own = span.get(p)
    if (own) p.y = (own[0] + own[1]) / 2
    if (!p.parent) continue
    const s = span.get(p.parent)
    span.set(p.parent, s ? [Math.min(s[0], p.y), Math.max(s[1], p.y)] : [p.y, p.y])
  }
}

export const hasLengths = (root: Node): boolean => upwards(root).some((n) => (n.length ?? 0) > 0)
