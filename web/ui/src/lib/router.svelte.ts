// The current page of the application: the path below the base, and its query.
import { pageURL, search, type Query } from './address'

class Router {
  /** Segments of the path, decoded: `jobs/a%20b` is ['jobs', 'a b']. */
  segments = $state.raw<string[]>([])
  query = $state.raw(new URLSearchParams())
  hash = $state.raw('')
  /** The question to confirm before leaving the page, or "". */
  guard: (() => string) | undefined

  constructor() {
    this.#read()
    addEventListener('popstate', () => this.#read())
    addEventListener('beforeunload', (e) => this.guard?.() && e.preventDefault())
    document.addEventListener('click', (e) => this.#follow(e))
  }

  /** Goes to a page. */
  go(path: string, query: Query = {}, how: 'push' | 'replace' = 'push') {
    this.#visit(pageURL(path, query), how)
  }

  /** Changes parts of the query without leaving the page. */
  set(changes: Query, how: 'push' | 'replace' = 'replace') {
    const q: Query = {}
    for (const name of this.query.keys()) q[name] = this.query.getAll(name)
    history[how === 'push' ? 'pushState' : 'replaceState'](null, '', location.pathname + search({ ...q, ...changes }))
    this.#readQuery()
  }

  #visit(url: string, how: 'push' | 'replace') {
    const leaving = new URL(url, location.href).pathname !== location.pathname
    const ask = leaving && this.guard?.()
    if (ask && !confirm(ask)) return
    if (leaving) this.guard = undefined
    history[how === 'push' ? 'pushState' : 'replaceState'](null, '', url)
    this.#read()
    if (leaving) scrollTo(0, 0)
  }

  #read() {
    const base = new URL(document.baseURI).pathname
    const path = location.pathname.startsWith(base) ? location.pathname.slice(base.length) : ''
    this.segments = path.split('/').filter(Boolean).map(decode) // a new array even if equal, so that the page is recreated
    this.#readQuery()
  }

  #readQuery() {
    this.query = new URLSearchParams(location.search)
    this.hash = location.hash.slice(1)
  }

  /** Handles links to pages without reloading. */
  #follow(e: MouseEvent) {
    const link = e.target instanceof Element ? e.target.closest('a') : null
    if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return
    if (link.target || link.hasAttribute('download') || link.origin !== location.origin) return
    if (!link.pathname.startsWith(new URL(document.baseURI).pathname) || link.getAttribute('href')?.startsWith('#')) return
    e.preventDefault()
    this.#visit(link.href, 'push')
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export const router = new Router()
