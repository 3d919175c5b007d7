// URLs. The application is served below `ui/` of the service, at any path, and
// document.baseURI, which the start page sets, is that folder.

/** The message for a request without a response. */
export const noAnswer = 'The server is not responding.'

/** The URL of an API route, such as `jobs/x/files`; path is percent-encoded. */
export function apiURL(path: string, query: Query = {}): string {
  const url = new URL('../' + path.replace(/^\//, ''), document.baseURI)
  url.search = search(query)
  return url.href
}

/** The URL of a page of this application, such as `jobs/x`. */
export function pageURL(path: string, query: Query = {}): string {
  return new URL(path, document.baseURI).pathname + search(query)
}

export type Query = Record<string, string | number | boolean | readonly string[] | undefined | null>

/** The query string of a URL, without empty and false values. */
export function search(query: Query): string {
  const q = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((v) => q.append(name, v))
    else if (value !== undefined && value !== null && value !== '' && value !== false) q.set(name, String(value))
  }
  const text = q.toString()
  return text && '?' + text
}

/** Encodes a name as one segment of a path. */
export const segment = (name: string) => encodeURIComponent(name)

/** Encodes the path of a file, keeping its slashes. */
export const segments = (path: string) => path.split('/').map(encodeURIComponent).join('/')
