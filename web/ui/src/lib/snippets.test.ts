import { expect, test } from 'vitest'
import { command, curl, python, toml } from './snippets'

const hostile = { jobName: "it's", type: 'x', settings: { text: '"""\\ $(id) `id` \u007f\n', n: 1e21, list: [1, null, 'a'], deep: { 'a b': true } } }

test('a quote does not end the word of the shell', () => {
  const lines = curl('http://a.example/it’s', { jobName: "it's $(id)" }).split('\n')
  expect(lines.slice(1).join('\n')).toBe(`  --data '{\n  "jobName": "it'\\''s $(id)"\n}' \\\n  'http://a.example/it’s'`)
})

test('Python reads the submission as it is', () => {
  const text = python('http://a.example/', hostile)
  const body = text.slice(text.indexOf('r"""') + 4, text.lastIndexOf('"""'))
  expect(body).not.toContain('"""')
  expect(JSON.parse(body)).toEqual(hostile)
  expect(text).toContain('os.environ["MOLRUN_KEY"].strip()') // an error of Python's would show a key with a line break
})

test('TOML of one job and of many', () => {
  expect(toml(hostile)).toBe('jobName = "it\'s"\ntype = "x"\n\n[settings]\ntext = "\\"\\"\\"\\\\ $(id) `id` \\u007F\\n"\nn = 1e+21\nlist = [1, "a"]\ndeep = { "a b" = true }\n')
  expect(toml({ batchName: 'b', fanOut: { each: { '*': 'csv:inputs/a.csv' } } })).toBe('batchName = "b"\nfanOut = { each = { "*" = "csv:inputs/a.csv" } }\n')
  expect(toml({ batchName: 'b', settings: [{ a: 1 }, { a: 2 }] })).toBe('batchName = "b"\n\n[[settings]]\na = 1\n\n[[settings]]\na = 2\n')
})

test('a command of molrun says the same', () => {
  const body = { jobName: 'dock 1', type: 'vina', version: '1.2', settings: { smiles: 'C1=CC', text: '8', file: '@x', n: 8, list: ['a', "it's"], none: null }, tags: { target: '6LU7' }, after: ['prep'], priority: -3, maxRuntimeSeconds: 60 }
  expect(command('http://lab.example/molrun/submit-job', body)).toBe(
    [
      'molrun submit vina', '--server http://lab.example/molrun', "--name 'dock 1'", '--version 1.2', '--set smiles=C1=CC', `--set 'text="8"'`, `--set 'file="@x"'`,
      '--set n=8', `--set 'list=["a","it'\\''s"]'`, '--tag target:6LU7', '--after prep', '--priority=-3', '--max-runtime 60s',
    ].join(' \\\n  '),
  )
  expect(command('http://lab.example/submit-batch', { batchName: 'b', settings: [{}] })).toBe('')
})
