// Addresses. The application lies below `ui/` of the service, wherever that is, and
// document.baseURI, which the start page sets, is that folder.

/** The problem of a request that had no answer. */
export const noAnswer = 'The server does not answer.'

/** The address of a route of the API, such as `jobs/x/files`; path is percent-encoded. */
export function apiURL(path: string, query: Query = {}): string {
  const url = new URL('../' + path.replace(/^\//, ''), document.baseURI)
  url.search = search(query)
  return url.href
}

/** The address of a page of this application, such as `jobs/x`. */
export function pageURL(path: string, query: Query = {}): string {
  return new URL(path, document.baseURI).pathname + search(query)
}

export type Query = Record<string, string | number | boolean | readonly string[] | undefined | null>

/** The query of an address; empty and false values are left out. */
export function search(query: Query): string {
  const q = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((v) => q.append(name, v))
    else if (value !== undefined && value !== null && value !== '' && value !== false) q.set(name, String(value))
  }
  const text = q.toString()
  return text && '?' + text
}

/** A name as one segment of a path. */
export const segment = (name: string) => encodeURIComponent(name)

/** A path of a file, with its slashes. */
export const segments = (path: string) => path.split('/').map(encodeURIComponent).join('/')
