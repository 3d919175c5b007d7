// The filled form as code or as a file for the same submission.

export type Body = Record<string, unknown>

/** Quotes a text as one word of a POSIX shell. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

export function curl(url: string, body: Body): string {
  return `curl --fail-with-body -H "x-api-key: $MOLRUN_KEY" -H 'content-type: application/json' \\\n  --data ${quoted(JSON.stringify(body, null, 2))} \\\n  ${quoted(url)}`
}

export function python(url: string, body: Body): string {
  return `import json, os, urllib.request

body = json.loads(r"""
${JSON.stringify(body, null, 2).replaceAll('"""', '\\"\\"\\"')}
""")
request = urllib.request.Request(${JSON.stringify(url)}, json.dumps(body).encode(),
    {"x-api-key": os.environ["MOLRUN_KEY"].strip(), "content-type": "application/json"})
print(urllib.request.urlopen(request).read().decode())
`
}

/** A shell word, quoted only if needed. */
const word = (text: string) => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : quoted(text))

/** A value for --set: text as it is, unless it would be read as JSON or as a file name. */
function setValue(v: unknown): string {
  if (typeof v !== 'string') return JSON.stringify(v)
  if (v.startsWith('@')) return JSON.stringify(v)
  try {
    JSON.parse(v)
    return JSON.stringify(v)
  } catch {
    return v
  }
}

/** A molrun command for one job; "" for a batch. */
export function command(url: string, body: Body): string {
  if (typeof body.jobName !== 'string' || Array.isArray(body.settings)) return ''
  const parts = [`molrun submit ${word(String(body.type))}`, `--server ${word(url.replace(/\/submit-job$/, ''))}`, `--name ${word(body.jobName)}`]
  if (body.version) parts.push(`--version ${word(String(body.version))}`)
  for (const [k, v] of Object.entries((body.settings ?? {}) as Body)) if (v !== null && v !== undefined) parts.push(`--set ${word(`${k}=${setValue(v)}`)}`)
  for (const [k, v] of Object.entries((body.tags ?? {}) as Record<string, string>)) parts.push(`--tag ${word(`${k}:${v}`)}`)
  for (const name of (body.after ?? []) as string[]) parts.push(`--after ${word(name)}`)
  if (body.afterAny) parts.push('--after-any')
  if (body.note) parts.push(`--note ${word(String(body.note))}`)
  for (const to of (body.notify ?? []) as string[]) parts.push(`--notify ${word(to)}`)
  if (body.priority) parts.push(`--priority=${String(body.priority)}`)
  if (body.maxRuntimeSeconds) parts.push(`--max-runtime ${String(body.maxRuntimeSeconds)}s`)
  return parts.join(' \\\n  ')
}

/** A JSON value in TOML, without null, which TOML lacks. */
function tomlValue(v: unknown): string {
  if (typeof v === 'string') return JSON.stringify(v).replace(/\u007f/g, '\\u007F')
  if (typeof v === 'number') return Number.isInteger(v) && Math.abs(v) >= 2 ** 63 ? v.toExponential() : String(v).replace('e+', 'e')
  if (Array.isArray(v)) return `[${v.filter((x) => x !== null).map(tomlValue).join(', ')}]`
  if (typeof v === 'object' && v !== null) return `{ ${Object.entries(v).filter(([, x]) => x !== null && x !== undefined).map(([k, x]) => `${tomlKey(k)} = ${tomlValue(x)}`).join(', ')} }`
  return String(v)
}

const tomlKey = (k: string) => (/^[A-Za-z0-9_-]+$/.test(k) ? k : JSON.stringify(k))

export function toml(body: Body): string {
  const plain = Object.entries(body).filter(([k, v]) => k !== 'settings' && v !== undefined && v !== null)
  const lines = plain.map(([k, v]) => `${tomlKey(k)} = ${tomlValue(v)}`)
  const settings = body.settings
  const tables = settings === undefined ? [] : Array.isArray(settings) ? settings.map((s) => ['[[settings]]', s] as const) : [['[settings]', settings ?? {}] as const]
  for (const [head, table] of tables) {
    lines.push('', head, ...Object.entries(table as Body).map(([k, v]) => `${tomlKey(k)} = ${tomlValue(v)}`))
  }
  return lines.join('\n') + '\n'
}
